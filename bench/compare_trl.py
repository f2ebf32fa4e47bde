#!/usr/bin/env python3
"""Trains SmolLM2-135M here and with TRL in turn and prints one table. See README.md.

    python bench/compare_trl.py --gguf SmolLM2-135M-Instruct.Q4_1.gguf [--quick] [--binary build/aitraining]
"""
import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import chats

HERE = Path(__file__).resolve().parent
WARM = 2  # updates that the rate leaves out
UPDATE = re.compile(r"'loss'")


@dataclass
class Update:
    time: float  # wall clock at its end
    tokens: int  # real tokens through the model since the start
    trained: int  # trained tokens since the start
    loss: float


@dataclass
class Measured:
    name: str
    started: float
    updates: list
    peak_bytes: int

    @property
    def tokens_per_second(self):
        first, last = self.updates[WARM - 1], self.updates[-1]
        return (last.tokens - first.tokens) / (last.time - first.time)

    @property
    def first_update(self):
        return self.updates[0].time - self.started


def run(name, command, env, on_line):
    """Runs to the end; `on_line(line, time)` sees standard output as it comes. Peak memory is the kernel's figure."""
    started = time.time()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
        tail = []
        for line in process.stdout:
            tail.append(line)
            on_line(line, time.time())
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


def ours(options, case, project):
    shutil.rmtree(project, ignore_errors=True)
    command = [options.binary, "llm", "--train", "--trainer", "sft", "--model", options.model, "--data-path", options.data,
               "--project-name", project, "--log", "none", "--epochs", "1", "--text-column", "messages",
               "--max-samples", options.rows, "--batch-size", options.batch_size,
               "--gradient-accumulation", options.accumulation, "--lr", "1e-4", "--warmup-ratio", "0",
               "--block-size", options.max_length, "--logging-steps", "1", "--save-strategy", "no", "--eval-strategy", "no",
               "--device", "cpu", "--nproc-per-node", "1", "--disable-gradient-checkpointing"]
    command += ["--response-only-loss" if case.response_only else "--no-response-only-loss"]
    command += ["--peft", "--lora-r", "16", "--lora-alpha", "32", "--lora-dropout", "0.05", "--no-merge-adapter"] if case.peft else []
    ends = []

    def on_line(line, now):
        if UPDATE.search(line):
            ends.append(now)
    started, peak = run("aitraining", list(map(str, command)), environment(options.threads), on_line)
    history = json.loads((Path(project) / "trainer_state.json").read_text())["log_history"]
    records = [record for record in history if "loss" in record]
    assert len(records) == len(ends) == options.steps, (len(records), len(ends), options.steps)
    trained, updates = 0, []
    for end, record in zip(ends, records):
        trained += record["num_trained_tokens"]
        updates.append(Update(end, record["num_input_tokens_seen"], trained, record["loss"]))
    return Measured("aitraining", started, updates, peak)


def trl(options, case, output):
    command = [sys.executable, HERE / "trl_side.py", "--model", options.model, "--data", Path(options.data) / "train.jsonl",
               "--output", output, "--steps", options.steps, "--batch-size", options.batch_size, "--accumulation",
               options.accumulation, "--max-length", options.max_length, "--threads", options.threads]
    command += ["--peft"] * case.peft + ["--response-only"] * case.response_only
    updates = []

    def on_line(line, now):
        if line.startswith("BENCH "):
            record = json.loads(line.removeprefix("BENCH "))
            updates.append(Update(record["time"], record["tokens"], record["trained"], float(record["loss"])))
    started, peak = run("TRL", list(map(str, command)), environment(options.threads), on_line)
    assert len(updates) == options.steps, (len(updates), options.steps)
    return Measured("TRL", started, updates, peak)


@dataclass
class Case:
    name: str
    peft: bool
    response_only: bool


CASES = [
    Case("full, all tokens", False, False), Case("LoRA, all tokens", True, False),
    Case("full, responses only", False, True), Case("LoRA, responses only", True, True),
]


def prepare_model(options, work):
    """One folder in Hugging Face's form, dequantised from the GGUF, for both sides."""
    if options.model:
        return Path(options.model)
    folder = work / "SmolLM2-135M-Instruct"
    if not (folder / "config.json").exists():
        subprocess.run([sys.executable, HERE / "gguf_to_hf.py", options.gguf, folder], check=True, env=environment(options.threads))
    return folder


def row(case, measured):
    return (f"| {case.name} | {measured.name} | {measured.tokens_per_second:.1f} | {measured.peak_bytes / 2**30:.2f} | "
            f"{measured.first_update:.1f} | {measured.updates[-1].tokens} | {measured.updates[-1].trained} | "
            f"{measured.updates[0].loss:.4f} | {measured.updates[-1].loss:.4f} |")


def ratios(case, one, other):
    return (f"| {case.name} | ours / TRL | **{one.tokens_per_second / other.tokens_per_second:.2f}** | "
            f"**{one.peak_bytes / other.peak_bytes:.2f}** | **{one.first_update / other.first_update:.2f}** | | | | |")


def table(results, options):
    yield (f"SmolLM2-135M, fp32, batch {options.batch_size} x {options.accumulation}, {options.steps} updates, "
           f"{options.threads} threads, {platform.processor() or platform.machine()}")
    yield ""
    yield "| case | side | tokens/s | peak RSS, GiB | first update after, s | tokens | trained | first loss | last loss |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for case, sides in results:
        for measured in sides:
            yield row(case, measured)
        if len(sides) == 2:
            yield ratios(case, *sides)


def as_json(results):
    return [{"case": case.name, "side": m.name, "tokens_per_second": m.tokens_per_second, "peak_bytes": m.peak_bytes,
             "first_update_seconds": m.first_update, "tokens": m.updates[-1].tokens, "losses": [u.loss for u in m.updates]}
            for case, sides in results for m in sides]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--gguf", type=Path, help="SmolLM2-135M-Instruct.Q4_1.gguf")
    source.add_argument("--model", type=Path, help="the same model, already in Hugging Face's form")
    parser.add_argument("--binary", default=HERE.parent / "build" / "aitraining", type=Path)
    parser.add_argument("--work", type=Path, help="folder for model, data and outputs (default: a temporary one)")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--max-length", type=int, default=512)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--quick", action="store_true", help="6 updates of the two like-for-like cases")
    parser.add_argument("--only", choices=["ours", "trl"], help="one side alone")
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    parser.add_argument("--json", type=Path, help="also write the results here")
    return parser.parse_args()


def main():
    options = parse()
    if options.quick:
        options.steps = min(options.steps, 6)
    if options.steps <= WARM + 1:
        sys.exit(f"--steps must be above {WARM + 1}: the first {WARM} are not counted")
    work = options.work or Path(tempfile.mkdtemp(prefix="compare-trl-"))
    try:
        options.model, options.data = prepare_model(options, work), work / "data"
        options.rows = options.steps * options.batch_size * options.accumulation
        chats.write(options.data, options.rows)
        cases = [case for case in CASES if not options.case or case.name in options.case]
        results = []
        for case in cases[:2] if options.quick and not options.case else cases:
            sides = [ours(options, case, work / "ours")] if options.only != "trl" else []
            sides += [trl(options, case, work / "trl")] if options.only != "ours" else []
            results.append((case, sides))
            print(*(row(case, measured) for measured in sides), sep="\n", file=sys.stderr, flush=True)
        print("\n".join(table(results, options)))
        if options.json:
            options.json.write_text(json.dumps(as_json(results), indent=2))
    finally:
        if not options.work:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
