#!/usr/bin/env python3
"""Trains SmolLM2-135M on two ranks with each engine here and with DeepSpeed ZeRO-3 in turn and prints one table.
See README.md.

    python bench/compare_deepspeed.py --gguf SmolLM2-135M-Instruct.Q4_1.gguf [--quick] [--lora] [--engines ddp,deepspeed]
"""
import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from measure import Case, add_options, as_json, ours, prepare, trl

RANKS = 2
OURS = ("ddp", "zero2", "zero3")
ENGINES = (*OURS, "deepspeed")
FULL, LORA = Case("full", False, False), Case("LoRA", True, False)


def deepspeed(options, case, work):
    config = work / "ds3.json"
    config.write_text(json.dumps({
        "zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": options.batch_size,
        "gradient_accumulation_steps": options.accumulation, "gradient_clipping": 1.0, "bf16": {"enabled": False}}))
    # Its CPU backend is compiled at the first start, by the ninja of this Python's environment.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", RANKS]
    return trl(options, case, work / "deepspeed", "DeepSpeed ZeRO-3", RANKS, launcher, ["--deepspeed", config],
               {"DS_ACCELERATOR": "cpu", "PATH": path})


def measure(engine, options, case, work):
    if engine == "deepspeed":
        return deepspeed(options, case, work)
    return ours(options, case, work / engine, f"aitraining {engine}", RANKS, ["--distributed-backend", engine])


def ratios(measured, other):
    """Speed and memory as parts of the other's; blank where that one did not run."""
    if other is None:
        return " | "
    return f"{measured.tokens_per_second / other.tokens_per_second:.2f} | {measured.peak_bytes / other.peak_bytes:.2f}"


def row(case, measured, sides):
    return (f"| {case.name} | {measured.name} | {measured.tokens_per_second:.1f} | {measured.seconds_per_update:.2f} | "
            f"{measured.peak_bytes / 2**30:.2f} | {ratios(measured, sides.get('deepspeed'))} | "
            f"{ratios(measured, sides.get('ddp'))} | {measured.updates[-1].tokens} | {measured.updates[0].loss:.4f} | "
            f"{measured.updates[-1].loss:.4f} |")


def table(results, options):
    yield (f"SmolLM2-135M, fp32, {RANKS} ranks, batch {options.batch_size} x {options.accumulation} a rank, {options.steps} "
           f"updates, {options.threads} threads a rank, {platform.processor() or platform.machine()}")
    yield ""
    yield ("| case | engine | tokens/s | s per update | peak RSS of a rank, GiB | speed / DeepSpeed | RSS / DeepSpeed | "
           "speed / ddp | RSS / ddp | tokens | first loss | last loss |")
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for case, sides in results:
        for measured in sides.values():
            yield row(case, measured, sides)


def engine_list(text):
    engines = text.split(",")
    unknown = [engine for engine in engines if engine not in ENGINES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(ENGINES)}")
    return engines


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--threads", type=int, default=max(1, len(os.sched_getaffinity(0)) // RANKS), help="of each rank")
    parser.add_argument("--quick", action="store_true", help="6 updates")
    parser.add_argument("--lora", action="store_true", help="LoRA after full fine-tuning")
    parser.add_argument("--engines", type=engine_list, default=ENGINES, help=f"some of {','.join(ENGINES)} (default: all)")
    return parser.parse_args()


def main():
    options = parse()
    if options.quick:
        options.steps = min(options.steps, 6)
    work = options.work or Path(tempfile.mkdtemp(prefix="compare-deepspeed-"))
    try:
        prepare(options, work, RANKS)
        results = []
        for case in [FULL, LORA] if options.lora else [FULL]:
            sides = {}
            for engine in options.engines:
                sides[engine] = measure(engine, options, case, work)
                print(row(case, sides[engine], sides), file=sys.stderr, flush=True)
            results.append((case, sides))
        print("\n".join(table(results, options)))
        if options.json:
            options.json.write_text(json.dumps(as_json((case, sides.values()) for case, sides in results), indent=2))
    finally:
        if not options.work:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
