"""Evaluation: exact losses, by epoch and by steps, whatever the number of ranks."""
import pytest

from fixtures import models
from fixtures.data import chats, exchange
from fixtures.runner import train


@pytest.fixture
def data(tmp_path):
    chats(tmp_path / "data", [models.SAMPLE_A] * 8)
    return chats(tmp_path / "data", [models.SAMPLE_A, models.SAMPLE_B, models.SAMPLE_B], split="valid")


OPTIONS = {"lr": 0, "batch_size": 2, "gradient_accumulation": 1, "epochs": 2, "valid_split": "valid"}  # 4 updates an epoch
MEAN = (models.SUM_A + 2 * models.SUM_B) / (models.TOKENS_A + 2 * models.TOKENS_B)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_by_epoch(mb, data, project, ranks):
    run = train(mb, data, project, eval_strategy="epoch", ranks=ranks, **{**OPTIONS, "batch_size": 1}).ok()
    assert len(run.evals) == 2
    assert [record["eval_loss"] for record in run.evals] == pytest.approx([MEAN] * 2, abs=2e-6)
    assert [record["epoch"] for record in run.evals] == pytest.approx([1, 2])
    assert [record["step"] for record in run.evals] == [8 // ranks, 16 // ranks]


def test_by_steps(mb, data, project):
    run = train(mb, data, project, eval_strategy="steps", eval_steps=3, **OPTIONS).ok()
    assert [record["step"] for record in run.evals][:2] == [3, 6]
    assert all(record["eval_loss"] == pytest.approx(MEAN, abs=2e-6) for record in run.evals)


def test_not_asked_for(mb, data, project):
    run = train(mb, data, project, eval_strategy="no", **OPTIONS).ok()
    assert not run.evals


def test_no_validation_split_no_evaluation(mb, data, project):
    run = train(mb, data, project, **{**OPTIONS, "valid_split": None}).ok()
    assert not run.evals and "eval_loss" not in run.output


def test_evaluation_does_not_disturb_training(m0, tmp_path):
    rows = [exchange("q", "abc" * n) for n in range(1, 9)]
    data = chats(tmp_path / "data", rows)
    chats(data, rows[:3], split="valid")
    options = {"lr": 1e-2, "epochs": 2, "batch_size": 1, "gradient_accumulation": 2, "peft": True, "lora_dropout": 0.3}
    without = train(m0, data, tmp_path / "without", **options).ok()
    with_eval = train(m0, data, tmp_path / "with", valid_split="valid", eval_strategy="steps", eval_steps=2, **options).ok()
    assert with_eval.losses == without.losses
    losses = [record["eval_loss"] for record in with_eval.evals]
    assert len(losses) >= 4 and losses[-1] < losses[0]
