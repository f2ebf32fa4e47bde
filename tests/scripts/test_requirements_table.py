"""docs/requirements.md: every row is there, and every test that it names exists."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(r"^\| S(\d+) \| ([^|]*) \| ([^|]*) \|([^|]*)\|$", (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8"),
                  re.MULTILINE)


def named_tests(cell):
    return re.findall(r"`([^`]+)::([^`]+)`", cell)


def defined_in(file, name):
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        return re.search(rf"^def {name}\(", text, re.MULTILINE)
    suite, case = name.split(".")
    return re.search(rf"^TEST(?:_F|_P)?\({suite}, {case}\)", text, re.MULTILINE)


def test_all_rows_in_order():
    assert [int(number) for number, *_ in ROWS] == list(range(1, 62))


def test_every_row_has_a_test_or_says_what_is_open():
    for number, claim, tested, still_open in ROWS:
        assert claim and (named_tests(tested) or still_open.strip()), number
        assert re.sub(r"`[^`]+::[^`]+`|[, ]", "", tested) == "", f"S{number}: only tests stand in the third column"


@pytest.mark.parametrize("number,path,name", [(number, *test) for number, _, tested, _ in ROWS for test in named_tests(tested)])
def test_named_test_exists(number, path, name):
    file = ROOT / "tests" / path
    assert file.is_file(), f"S{number}: no {path}"
    assert defined_in(file, name), f"S{number}: {path} has no {name}"
