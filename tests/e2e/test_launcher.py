"""One command, several processes: BR-03 (ports), a rank that dies (BR-20's signals too), exit codes, what ranks are told."""
import re
import signal
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from fixtures.data import chats, random_chats
from fixtures.runner import family, finish, gone, kill_tree, ranks_of, start, train, training_command

ENDLESS = {"epochs": 1000000, "lr": 1e-4, "batch_size": 1, "gradient_accumulation": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return chats(tmp_path_factory.mktemp("launcher") / "data", random_chats(8, seed=1))


@contextmanager
def listener(port):
    """Something on 127.0.0.1:port, ours or, when it is taken already, someone else's."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", port))
            server.listen()
        except OSError:
            pass
        yield


def test_br03_default_port_is_busy(m0, data, project):
    with listener(29500):
        assert train(m0, data, project, ranks=2).ok().steps


def test_br03_two_runs_at_the_same_instant(m0, data, tmp_path):
    commands = [training_command(m0, data, tmp_path / name, ranks=2) for name in ("one", "two")]
    processes = [start(command) for command in commands]
    for process, command, name in zip(processes, commands, ("one", "two")):
        assert finish(process, 120, tmp_path / name, command).ok().steps


def test_br03_left_over_variables_are_ignored(m0, data, project):
    """RANK and its like, left in the environment by something else, do not make this a rank."""
    left = {"RANK": 1, "WORLD_SIZE": 8, "LOCAL_RANK": 1, "MASTER_ADDR": "10.255.255.1", "MASTER_PORT": 29500}
    with listener(29500):
        run = train(m0, data, project, ranks=2, env=left, timeout=60).ok()
    assert run.steps and "WORLD_SIZE" in run.output


@contextmanager
def running(model, data, project, ranks):
    """A run that has done its first updates; ended for certain afterwards."""
    command = training_command(model, data, project, ranks=ranks, **ENDLESS)
    process = start(command)
    watchdog = threading.Timer(90, kill_tree, [process])
    watchdog.start()
    try:
        for line in process.stdout:
            if "'loss'" in line:
                break
        else:
            raise AssertionError(f"no update was logged: {process.stderr.read()[-3000:]}")
        yield process
    finally:
        watchdog.cancel()
        kill_tree(process)
        process.stdout.close()
        process.stderr.close()


def end_of(process, timeout=15):
    """Exit code and the rest of the output. The pipes are drained so that the run cannot block on them."""
    begin = time.monotonic()
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out + err, time.monotonic() - begin


@pytest.mark.parametrize("ranks,victim", [(2, 1), (3, 0), (4, 2)])
def test_a_killed_rank_takes_the_others_down(m0, data, project, ranks, victim):
    with running(m0, data, project, ranks) as process:
        members, numbered = family(process), ranks_of(process)
        assert sorted(numbered) == list(range(ranks))
        numbered[victim].send_signal(signal.SIGKILL)
        code, output, seconds = end_of(process)
        assert code == 128 + signal.SIGKILL and seconds < 10  # the first failing rank's own end
        assert re.search(rf"rank {victim}\b", output, re.IGNORECASE), output[-3000:]
        assert re.search(r"SIGKILL|signal 9|killed", output, re.IGNORECASE), output[-3000:]
        assert gone(members)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_br20_signal_to_the_launcher(m0, data, project, ranks, number):
    with running(m0, data, project, ranks) as process:
        members = family(process)
        process.send_signal(number)
        code, _, seconds = end_of(process)
        assert code == 128 + number and seconds < 10
        assert gone(members)


def test_br20_killed_launcher_leaves_no_rank(m0, data, project):
    with running(m0, data, project, 2) as process:
        members = family(process)
        assert len(members) == 3
        process.send_signal(signal.SIGKILL)
        assert gone(members, timeout=10)


@pytest.mark.parametrize("ranks", [1, 2])
def test_numbers_that_stop_being_finite_end_the_run_with_the_reason(m0, data, project, ranks):
    result = train(m0, data, project, optimizer="sgd", lr=1e30, warmup_ratio=0, max_grad_norm=0, epochs=3, batch_size=1,
                   gradient_accumulation=1, ranks=ranks)
    assert result.code == 1
    assert re.search(r"not finite|non-finite|NaN|inf", result.output)
    assert not (project / "model.safetensors").exists()


def test_ranks_get_one_file_and_their_identity(m0, data, project):
    with running(m0, data, project, 2) as process:
        for rank, member in ranks_of(process).items():
            variables = member.environ()
            assert (variables["WORLD_SIZE"], variables["LOCAL_RANK"]) == ("2", str(rank))
            assert variables["MASTER_ADDR"] == "127.0.0.1" and int(variables["MASTER_PORT"]) > 0
            assert member.cmdline()[1:] == ["--run-rank", str(project / "training_params.json")]


def test_more_ranks_than_cores_work(m0, data, project):
    assert train(m0, data, project, ranks=5).ok().steps


@pytest.mark.parametrize("value", ["0", "-1", "x", "1.5"])
def test_bad_number_of_ranks(m0, data, project, value):
    train(m0, data, project, ranks=value).refused("nproc")
