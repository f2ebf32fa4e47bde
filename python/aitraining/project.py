"""AutoTrainProject: one training, run by the executable."""
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from aitraining.params import LLMTrainingParams

# Parameters that are secrets, and the variable that hands each on: neither a command line nor a file holds them.
SECRETS = {"token": "HF_TOKEN", "wandb_token": "WANDB_API_KEY"}
_KEPT = 64 * 1024  # bytes of what the executable said last, for the message of an exception
_USER_ERROR = 2


class TrainingFailed(RuntimeError):
    """The training did not end well; `code` is its exit code (128+n: ended by signal n)."""

    def __init__(self, code, said):
        super().__init__(f"Training failed with exit code: {code}" + (f"\n{said}" if said else ""))
        self.code = code


def executable():
    """Path of `aitraining`: AITRAINING_BIN, else beside this package, else on PATH."""
    given = os.environ.get("AITRAINING_BIN")
    if given:
        if not os.access(given, os.X_OK):
            raise FileNotFoundError(f"AITRAINING_BIN={given} is no executable file: mend or unset it")
        return os.path.abspath(given)
    package = Path(__file__).resolve().parent
    # An installed package may carry it; in a source tree it is what `make` builds.
    beside = [package / "bin" / "aitraining", package.parent.parent / "build" / "aitraining"]
    for candidate in beside:
        if os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("aitraining")
    if not found:
        looked = ", ".join(map(str, beside))
        raise FileNotFoundError(f"the executable aitraining is neither on PATH nor one of {looked}: set AITRAINING_BIN to it")
    return found


class AutoTrainProject:
    """`backend`: where to run; "local" is this machine, the only one so far. `process`: read and prepare the data of
    data_path, which the executable always does; False is refused."""

    def __init__(self, params, backend="local", process=True):
        if not isinstance(params, LLMTrainingParams):
            raise TypeError(f"params: LLMTrainingParams is due, not {type(params).__name__}")
        if backend != "local":
            raise ValueError(f"Invalid backend: {backend} (this build runs on this machine only: local)")
        if not process:
            raise ValueError("process=False: data that an earlier run prepared is not kept; use process=True")
        self.params, self.backend, self.process = params, backend, process

    def create(self):
        """Trains, and returns the job id (the process id of the executable) after it has ended well.

        ValueError with every problem that was found before work; TrainingFailed when the work failed.
        """
        values = self.params.changed()
        secrets = {name: values.pop(name) for name in SECRETS if name in values}
        environment = {**os.environ, **{SECRETS[name]: value for name, value in secrets.items() if value is not None}}
        text = json.dumps(values, allow_nan=False)
        sys.stdout.flush()
        # A session of its own: the terminal's Ctrl-C comes once, through this process.
        job = subprocess.Popen([executable(), "--run-job"], stdin=subprocess.PIPE, stdout=_inherited(sys.stdout, 1),
                               stderr=subprocess.PIPE, env=environment, start_new_session=True)
        code, said = _follow(job, text.encode())
        if code == _USER_ERROR:
            raise ValueError(said or "the parameters were refused")
        if code != 0:
            raise TrainingFailed(code, said)
        return job.pid


def _inherited(stream, descriptor):
    """None when a child's output reaches what Python prints to by itself; a pipe in notebooks and the like."""
    try:
        return None if stream.fileno() == descriptor else subprocess.PIPE
    except (AttributeError, OSError, ValueError):
        return subprocess.PIPE


def _follow(job, text):
    """Passes on what the job says until it ends. Returns its exit code and its error."""
    tail = bytearray()
    copies = [threading.Thread(target=_copy, args=(job.stderr, sys.stderr, tail), daemon=True)]
    if job.stdout:
        copies.append(threading.Thread(target=_copy, args=(job.stdout, sys.stdout, bytearray()), daemon=True))
    for copy in copies:
        copy.start()
    try:
        _send(job.stdin, text)
        _wait(job)
    except BaseException:
        job.terminate()
        job.wait()
        raise
    for copy in copies:
        copy.join()
    code = job.returncode
    return (128 - code if code < 0 else code), _error_in(tail)


def _send(stream, text):
    try:
        stream.write(text)
        stream.close()
    except BrokenPipeError:
        pass  # it ended already; its exit code tells


def _wait(job):
    """Each Ctrl-C is passed on: the first lets the job end in its own time, the second ends it at once."""
    interrupted = False
    while job.returncode is None:
        try:
            job.wait()
        except KeyboardInterrupt:
            interrupted = True
            job.send_signal(signal.SIGINT)
    if interrupted:
        raise KeyboardInterrupt


def _copy(source, target, tail):
    with source:
        while chunk := source.read1(_KEPT):
            tail += chunk
            del tail[:-_KEPT]
            target.write(chunk.decode(errors="replace"))
            target.flush()


def _error_in(tail):
    """The executable's last words: its error, or the errors that the ranks ended with."""
    text = bytes(tail).decode(errors="replace")
    at = text.rfind("aitraining: error: ")
    if at >= 0:
        return text[at + len("aitraining: error: "):].strip()
    return "\n".join(line for line in text.splitlines() if line.startswith("error: "))
