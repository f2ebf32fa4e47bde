"""What the comparisons share: either side is started as it would be by hand, its updates are clocked, its memory is read."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import chats

HERE = Path(__file__).resolve().parent
WARM = 2  # updates that the rate leaves out
UPDATE = re.compile(r"'loss'")


@dataclass
class Case:
    name: str
    peft: bool
    response_only: bool


@dataclass
class Update:
    time: float  # wall clock at its end
    tokens: int  # real tokens through the model since the start, on all ranks
    trained: int  # trained tokens since the start
    loss: float


@dataclass
class Measured:
    name: str
    started: float
    updates: list
    peak_bytes: int  # of the largest process

    @property
    def tokens_per_second(self):
        first, last = self.updates[WARM - 1], self.updates[-1]
        return (last.tokens - first.tokens) / (last.time - first.time)

    @property
    def seconds_per_update(self):
        return (self.updates[-1].time - self.updates[WARM - 1].time) / (len(self.updates) - WARM)

    @property
    def first_update(self):
        return self.updates[0].time - self.started


def run(name, command, env, on_line):
    """Runs to the end; `on_line(line, time)` sees standard output as it comes. Returns the start and the kernel's figure
    for peak memory: that of the largest among the process and all that it started and waited for."""
    started = time.time()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(list(map(str, command)), env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
        tail = []
        try:
            for line in process.stdout:
                tail.append(line)
                on_line(line, time.time())
        except BaseException:
            process.terminate()  # a launcher ends its ranks then
            raise
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            sys.exit(f"{name} failed with {process.returncode}: {' '.join(map(str, command))}\n"
                     f"{''.join(tail[-20:])}{errors.read()[-4000:]}")
    return started, usage.ru_maxrss * 1024


def environment(threads):
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false"}


def ours(options, case, project, name="aitraining", ranks=1, words=()):
    """The executable on `ranks` ranks, with `words` as further flags."""
    shutil.rmtree(project, ignore_errors=True)
    command = [options.binary, "llm", "--train", "--trainer", "sft", "--model", options.model, "--data-path", options.data,
               "--project-name", project, "--log", "none", "--epochs", "1", "--text-column", "messages",
               "--max-samples", options.rows, "--batch-size", options.batch_size,
               "--gradient-accumulation", options.accumulation, "--lr", "1e-4", "--warmup-ratio", "0",
               "--block-size", options.max_length, "--logging-steps", "1", "--save-strategy", "no", "--eval-strategy", "no",
               "--device", "cpu", "--nproc-per-node", ranks, "--disable-gradient-checkpointing", *words]
    command += ["--response-only-loss" if case.response_only else "--no-response-only-loss"]
    command += ["--peft", "--lora-r", "16", "--lora-alpha", "32", "--lora-dropout", "0.05", "--no-merge-adapter"] if case.peft else []
    ends = []

    def on_line(line, now):
        if UPDATE.search(line):
            ends.append(now)
    started, peak = run(name, command, environment(options.threads), on_line)
    history = json.loads((Path(project) / "trainer_state.json").read_text())["log_history"]
    records = [record for record in history if "loss" in record]
    assert len(records) == len(ends) == options.steps, (len(records), len(ends), options.steps)
    trained, updates = 0, []
    for end, record in zip(ends, records):
        trained += record["num_trained_tokens"]
        updates.append(Update(end, record["num_input_tokens_seen"], trained, record["loss"]))
    return Measured(name, started, updates, peak)


def trl(options, case, output, name="TRL", ranks=1, launcher=(), words=(), env=()):
    """trl_side.py, under `launcher` where it has several ranks, with `words` as further flags."""
    command = [sys.executable, *launcher, HERE / "trl_side.py", "--model", options.model, "--data",
               Path(options.data) / "train.jsonl", "--output", output, "--steps", options.steps, "--batch-size",
               options.batch_size, "--accumulation", options.accumulation, "--max-length", options.max_length, "--threads",
               options.threads, *words]
    command += ["--peft"] * case.peft + ["--response-only"] * case.response_only
    records = defaultdict(list)

    def on_line(line, now):
        if line.startswith("BENCH "):
            record = json.loads(line.removeprefix("BENCH "))
            records[record["step"]].append(record)
    started, peak = run(name, command, {**environment(options.threads), **dict(env)}, on_line)
    assert sorted(records) == list(range(1, options.steps + 1)), sorted(records)
    assert all(len(of_ranks) == ranks for of_ranks in records.values()), "a rank has not reported every update"
    return Measured(name, started, [of_all_ranks(records[step]) for step in sorted(records)], peak)


def of_all_ranks(records):
    """One update: it has ended when it has on every rank; the logged loss is the same on all."""
    return Update(max(r["time"] for r in records), sum(r["tokens"] for r in records), sum(r["trained"] for r in records),
                  float(records[0]["loss"]))


def add_options(parser):
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--gguf", type=Path, help="SmolLM2-135M-Instruct.Q4_1.gguf")
    source.add_argument("--model", type=Path, help="the same model, already in Hugging Face's form")
    parser.add_argument("--binary", default=HERE.parent / "build" / "aitraining", type=Path)
    parser.add_argument("--work", type=Path, help="folder for model, data and outputs (default: a temporary one)")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=2, help="rows per rank")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--max-length", type=int, default=512)
    parser.add_argument("--json", type=Path, help="also write the results here")


def prepare(options, work, ranks=1):
    """Model and data for both sides: one folder in Hugging Face's form, dequantised from the GGUF, and as many chats as
    the updates need."""
    if options.steps <= WARM + 1:
        sys.exit(f"--steps must be above {WARM + 1}: the first {WARM} are not counted")
    if not options.model:
        options.model = work / "SmolLM2-135M-Instruct"
        if not (options.model / "config.json").exists():
            subprocess.run([sys.executable, HERE / "gguf_to_hf.py", options.gguf, options.model], check=True,
                           env=environment(options.threads))
    options.data = work / "data"
    options.rows = options.steps * options.batch_size * options.accumulation * ranks
    chats.write(options.data, options.rows)


def as_json(results):
    return [{"case": case.name, "side": m.name, "tokens_per_second": m.tokens_per_second,
             "seconds_per_update": m.seconds_per_update, "peak_bytes": m.peak_bytes, "first_update_seconds": m.first_update,
             "tokens": m.updates[-1].tokens, "losses": [u.loss for u in m.updates]}
            for case, sides in results for m in sides]
