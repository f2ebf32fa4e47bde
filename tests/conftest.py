"""Shared fixtures. Model folders are written once per session and are never changed by a test."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from fixtures import models  # noqa: E402  (the path above makes it importable)


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="session")
def m0(shared):
    return models.write_m0(shared / "m0")


@pytest.fixture(scope="session")
def m0t(shared):
    return models.write_m0(shared / "m0t", tied=True)


@pytest.fixture(scope="session")
def mb(shared):
    return models.write_mb(shared / "mb")


@pytest.fixture
def project(tmp_path):
    return tmp_path / "project"


@pytest.fixture(scope="session")
def smollm2():
    """Path of SmolLM2-135M-Instruct.Q4_1.gguf."""
    path = os.environ.get("AITRAINING_SMOLLM2", "")
    if not path:
        pytest.skip("AITRAINING_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf")
    assert Path(path).is_file(), f"AITRAINING_SMOLLM2={path} is no file"
    return Path(path)
