"""The line that make test ends with."""
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "count_tests.py"
PASSED_CTEST = '<testcase name="unit.core.a" status="run"/>'
PASSED_PYTEST = '<testcase classname="tests.e2e.test_a" name="a" file="tests/e2e/test_a.py"/>'


@pytest.fixture
def count(tmp_path):
    tests = tmp_path / "tests"
    for name in ("unit/core/a.cpp", "e2e/test_a.py", "gpu/test_g.py", "support/test_s.py"):
        (tests / name).parent.mkdir(parents=True, exist_ok=True)
        (tests / name).touch()

    def run(ctest=PASSED_CTEST, pytest_cases=PASSED_PYTEST, status=(0, 0)):
        for name, cases in (("ctest", ctest), ("pytest", pytest_cases)):
            (tmp_path / f"{name}.xml").write_text(f"<testsuite>{cases}</testsuite>")
        done = subprocess.run(
            [sys.executable, SCRIPT, "--tests", tests, "--ctest", tmp_path / "ctest.xml", "--pytest", tmp_path / "pytest.xml",
             "--status", *map(str, status)], capture_output=True, text=True)
        assert done.stderr == ""
        return done.returncode, done.stdout.splitlines()[-1], done.stdout
    return run


def test_both_runners_are_added(count):
    assert count()[:2] == (0, "2 passed, 0 failed")


@pytest.mark.parametrize("case", [
    '<testcase name="unit.core.b" status="fail"><failure message=""/></testcase>',
    '<testcase name="unit.core.b" status="notrun"><skipped message="Unable to find executable"/></testcase>',
])
def test_failed_and_missing_ctests_are_failures(count, case):
    assert count(ctest=PASSED_CTEST + case)[:2] == (1, "2 passed, 1 failed")


@pytest.mark.parametrize("kind", ["failure", "error"])
def test_failed_pytest(count, kind):
    case = f'<testcase name="b" file="tests/e2e/test_a.py"><{kind} message=""/></testcase>'
    assert count(pytest_cases=PASSED_PYTEST + case)[:2] == (1, "2 passed, 1 failed")


def test_skipped_tests_are_neither(count):
    ctest = '<testcase name="unit.core.s" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
    gpu = '<testcase name="g" file="tests/gpu/test_g.py"><skipped message="no GPU"/></testcase>'
    status, line, text = count(ctest=PASSED_CTEST + ctest, pytest_cases=PASSED_PYTEST + gpu)
    assert (status, line) == (0, "2 passed, 0 failed")
    assert "gpu: 0 passed, 0 failed, 1 skipped" in text


def test_a_suite_that_ran_nothing_is_a_failure(count):
    skipped = '<testcase name="a" file="tests/e2e/test_a.py"><skipped message="no model"/></testcase>'
    status, line, text = count(pytest_cases=skipped, status=(0, 0))
    assert (status, line) == (1, "1 passed, 1 failed")
    assert "e2e: no test of tests/e2e ran" in text


def test_a_runner_that_broke_down_is_a_failure(count):
    assert count(status=(0, 3))[:2] == (1, "2 passed, 1 failed")
