#!/usr/bin/env python3
"""Adds up the JUnit files of ctest and pytest; the last line is "N passed, N failed".

Fails when a test failed, when a runner did, or when a folder of tests/ ran no test: silence is no success.
"""
import argparse
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

# The tests in tests/gpu may all be skipped: most machines have no GPU.
MAY_BE_SKIPPED = {"gpu"}
HELPERS = {"support"}


def ctest_outcome(case):
    """ctest marks a test whose executable is missing as skipped, like one that skipped itself."""
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    skipped = case.find("skipped")
    if skipped is not None or case.get("status") in ("notrun", "disabled"):
        message = skipped.get("message", "") if skipped is not None else ""
        by_itself = message.startswith("SKIP_") or case.get("status") == "disabled"
        return "skipped" if by_itself else "failed"
    return "passed"


def pytest_outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def read(path, outcome_of, suite_of, counts):
    if not path.is_file():
        return
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        counts[suite_of(case), outcome_of(case)] += 1


def ctest_suite(case):
    return case.get("name", "").split(".")[0]


def pytest_suite(case):
    parts = Path(case.get("file") or case.get("classname", "").replace(".", "/")).parts
    return parts[1] if len(parts) > 1 and parts[0] == "tests" else "pytest"


def folders_with_tests(tests):
    for folder in sorted(p for p in tests.iterdir() if p.is_dir() and p.name not in HELPERS):
        if any(folder.rglob("*.cpp")) or any(folder.rglob("test_*.py")):
            yield folder.name


def silent_suites(tests, counts):
    """Folders whose tests did not run at all."""
    for suite in folders_with_tests(tests):
        ran = counts[suite, "passed"] + counts[suite, "failed"]
        if ran == 0 and not (suite in MAY_BE_SKIPPED):
            yield suite


def report(counts, silent, statuses):
    suites = sorted({suite for suite, _ in counts})
    for suite in suites:
        print(f"{suite}: " + ", ".join(f"{counts[suite, kind]} {kind}" for kind in ("passed", "failed", "skipped")))
    for suite in silent:
        print(f"{suite}: no test of tests/{suite} ran")
    total = Counter()
    for (_, kind), number in counts.items():
        total[kind] += number
    # A runner that broke down without a failed test, and a suite that did not run, count as a failure each.
    failed = total["failed"] + len(silent)
    if failed == 0 and any(statuses):
        print(f"a test runner failed: ctest exit code {statuses[0]}, pytest exit code {statuses[1]}")
        failed = 1
    print(f"{total['passed']} passed, {failed} failed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=Path, required=True)
    parser.add_argument("--ctest", type=Path, required=True)
    parser.add_argument("--pytest", type=Path, required=True)
    parser.add_argument("--status", type=int, nargs=2, required=True, metavar=("CTEST", "PYTEST"))
    options = parser.parse_args()
    counts = Counter()
    read(options.ctest, ctest_outcome, ctest_suite, counts)
    read(options.pytest, pytest_outcome, pytest_suite, counts)
    sys.exit(report(counts, list(silent_suites(options.tests, counts)), options.status))


if __name__ == "__main__":
    main()
