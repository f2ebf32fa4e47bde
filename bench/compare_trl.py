#!/usr/bin/env python3
"""Trains SmolLM2-135M here and with TRL in turn and prints one table. See README.md.

    python bench/compare_trl.py --gguf SmolLM2-135M-Instruct.Q4_1.gguf [--quick] [--binary build/aitraining]
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

CASES = [
    Case("full, all tokens", False, False), Case("LoRA, all tokens", True, False),
    Case("full, responses only", False, True), Case("LoRA, responses only", True, True),
]


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


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--quick", action="store_true", help="6 updates of the two like-for-like cases")
    parser.add_argument("--only", choices=["ours", "trl"], help="one side alone")
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    return parser.parse_args()


def main():
    options = parse()
    if options.quick:
        options.steps = min(options.steps, 6)
    work = options.work or Path(tempfile.mkdtemp(prefix="compare-trl-"))
    try:
        prepare(options, work)
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
