"""BR-20: whatever ends the launcher, and whenever, nothing of the run is left, and the last checkpoint is whole."""
import signal
import socket
import threading
from contextlib import contextmanager

import pytest

from fixtures.data import chats, random_chats
from fixtures.reading import checkpoints
from fixtures.runner import family, gone, kill_tree, ranks_of, start, train, training_command

ENDLESS = {"epochs": 1000000, "lr": 1e-4, "batch_size": 1, "gradient_accumulation": 1}
SAVING = {"save_strategy": "steps", "save_steps": 1, "save_total_limit": 2}
HANGUP, INTERRUPT, TERMINATE, KILL = signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return chats(tmp_path_factory.mktemp("signals") / "data", random_chats(8, seed=1))


@contextmanager
def run_until(phase, model, data, project, ranks, prefix=()):
    """A run that is `starting`, `training` or `saving` (checkpoints are then written all the time)."""
    process = start(training_command(model, data, project, ranks=ranks, **ENDLESS, **(SAVING if phase == "saving" else {})),
                    prefix=prefix)
    watchdog = threading.Timer(90, kill_tree, [process])
    watchdog.start()
    try:
        word = {"starting": "Project folder", "training": "'loss'", "saving": "'step': 3"}[phase]
        for line in process.stdout:
            if word in line:
                break
        else:
            raise AssertionError(process.stderr.read()[-3000:])
        yield process
    finally:
        watchdog.cancel()
        kill_tree(process)
        process.stdout.close()
        process.stderr.close()


def end_of(process):
    """The exit code that a shell sees, and the rest of the output."""
    out, err = process.communicate(timeout=10)
    code = process.returncode
    return (128 - code if code < 0 else code), out + err


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("phase", ["starting", "training", "saving"])
@pytest.mark.parametrize("number", [INTERRUPT, TERMINATE, HANGUP, KILL], ids=["INT", "TERM", "HUP", "KILL"])
def test_br20_one_signal(m0, data, project, ranks, phase, number):
    with run_until(phase, m0, data, project, ranks) as process:
        members = family(process)
        process.send_signal(number)
        code, _ = end_of(process)
        assert code == {INTERRUPT: 130, TERMINATE: 143, HANGUP: 129, KILL: 137}[number]
        assert gone(members)
    if phase == "saving":
        newest = checkpoints(project)[-1]
        resumed = train(m0, data, project, resume_from_checkpoint="auto", max_samples=1, epochs=newest + 1, batch_size=1,
                        gradient_accumulation=1).ok()
        assert f"checkpoint-{newest}" in resumed.output and resumed.state["global_step"] == newest + 1


@pytest.mark.parametrize("phase", ["training", "saving"])
def test_br20_a_second_interrupt_does_not_wait(m0, data, project, phase):
    with run_until(phase, m0, data, project, 2) as process:
        members = family(process)
        process.send_signal(INTERRUPT)
        process.send_signal(INTERRUPT)
        code, _ = end_of(process)
        assert code == 130 and gone(members, timeout=5)


def test_br20_the_port_is_free_afterwards(m0, data, project):
    with run_until("training", m0, data, project, 2) as process:
        port = int(ranks_of(process)[0].environ()["MASTER_PORT"])
        process.send_signal(TERMINATE)
        assert end_of(process)[0] == 143
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", port))


def test_br20_nohup_goes_on_after_a_hangup(m0, data, project):
    with run_until("training", m0, data, project, 2, prefix=["nohup"]) as process:
        members = family(process)
        process.send_signal(HANGUP)
        assert next(line for line in process.stdout if "'loss'" in line)  # still training
        process.send_signal(TERMINATE)
        assert end_of(process)[0] == 143 and gone(members)


@pytest.mark.parametrize("number,code", [(INTERRUPT, 130), (KILL, 137)])
def test_br20_standard_input_closed(m0, data, project, number, code):
    with run_until("training", m0, data, project, 2, prefix=["/bin/sh", "-c", 'exec "$@" <&-', "sh"]) as process:
        members = family(process)
        process.send_signal(number)
        assert end_of(process)[0] == code and gone(members)
