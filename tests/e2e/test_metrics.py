"""BR-36 (rates used = rates logged), BR-42 (bf16 keeps fp32 masters), and what the log counts."""
import pytest
import torch

from fixtures import models
from fixtures.data import chats, exchange, random_chats
from fixtures.reading import header, weights
from fixtures.runner import train

RUN = {"batch_size": 2, "gradient_accumulation": 4, "epochs": 3, "lr": 1e-3, "scheduler": "linear"}  # 10 rows: 6 updates


def rates(model, tmp_path, rows=10, **options):
    data = chats(tmp_path / "data", [models.SAMPLE_A] * rows)
    return train(model, data, tmp_path / "project", **{**RUN, **options}).ok().column("learning_rate")


@pytest.mark.parametrize("ratio,expected", [
    (0.1, [0, 1e-3, 8e-4, 6e-4, 4e-4, 2e-4]),
    (0.05, [0, 1e-3, 8e-4, 6e-4, 4e-4, 2e-4]),
    (0, [1e-3, 8.333333e-4, 6.666667e-4, 5e-4, 3.333333e-4, 1.666667e-4]),
    (1.0, [0, 1e-3 / 6, 2e-3 / 6, 3e-3 / 6, 4e-3 / 6, 5e-3 / 6]),
])
def test_br36_linear(m0, tmp_path, ratio, expected):
    assert rates(m0, tmp_path, warmup_ratio=ratio) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("ratio,expected", [(0.1, 0), (1.0, 0), (0, 1e-3)])
def test_br36_one_update(m0, tmp_path, ratio, expected):
    assert rates(m0, tmp_path, rows=1, epochs=1, warmup_ratio=ratio) == pytest.approx([expected])


def test_br36_constant(m0, tmp_path):
    assert rates(m0, tmp_path, scheduler="constant", warmup_ratio=0.1) == pytest.approx([1e-3] * 6)


def test_br36_the_logged_rate_is_the_one_used(m0, tmp_path, project):
    """With plain SGD an update moves each weight by rate x gradient: nothing in update 1, something in update 2."""
    data = chats(tmp_path / "data", [models.SAMPLE_A])
    options = {"optimizer": "sgd", "lr": 0.1, "max_grad_norm": 0, "batch_size": 1, "gradient_accumulation": 1}
    one = train(m0, data, tmp_path / "one", epochs=1, warmup_ratio=1.0, **options).ok()
    assert one.column("learning_rate") == [0]
    assert all(torch.equal(t, weights(m0)[name]) for name, t in weights(one.project).items())
    two = train(m0, data, tmp_path / "two", epochs=2, warmup_ratio=0.5, **options).ok()
    assert two.column("learning_rate") == pytest.approx([0, 0.1])
    moved = torch.sqrt(sum(((t - weights(m0)[name]).double() ** 2).sum() for name, t in weights(two.project).items()))
    assert float(moved) == pytest.approx(0.1 * two.steps[1]["grad_norm"], rel=1e-4)


@pytest.mark.parametrize("rows,batch,accumulation,epochs,ranks,updates", [
    (40, 2, 4, 3, 1, 15), (10, 2, 4, 3, 1, 6), (5, 1, 4, 2, 1, 4), (7, 2, 2, 1, 2, 1), (9, 2, 1, 2, 3, 4), (1, 8, 8, 2, 1, 2),
])
def test_number_of_updates(m0, tmp_path, project, rows, batch, accumulation, epochs, ranks, updates):
    data = chats(tmp_path / "data", [models.SAMPLE_A] * rows)
    run = train(m0, data, project, batch_size=batch, gradient_accumulation=accumulation, epochs=epochs, ranks=ranks).ok()
    assert [record["step"] for record in run.steps] == list(range(1, updates + 1))
    assert run.state["global_step"] == run.state["max_steps"] == updates
    assert run.steps[-1]["epoch"] == pytest.approx(epochs)
    tokens = 9 + 14  # the turn of the user, the turn of the assistant
    assert run.steps[-1]["num_input_tokens_seen"] == rows * epochs * tokens
    assert sum(run.column("num_trained_tokens")) == rows * epochs * 2


def test_logging_interval_is_a_token_mean(mb, tmp_path, project):
    data = chats(tmp_path / "data", [models.SAMPLE_A, models.SAMPLE_B])
    run = train(mb, data, project, lr=0, batch_size=1, gradient_accumulation=1, logging_steps=2).ok()
    assert run.losses == pytest.approx([models.MEAN_AB], abs=2e-6)
    assert run.column("num_trained_tokens") == [20]


def test_max_samples_takes_evenly_spaced_rows(mb, tmp_path, project):
    data = chats(tmp_path / "data", [exchange("q", "a" * (i + 1)) for i in range(10)])
    run = train(mb, data, project, lr=0, max_samples=3, batch_size=3, gradient_accumulation=1).ok()
    assert run.column("num_trained_tokens") == [2 + 5 + 8]  # rows 0, 3, 6


@pytest.fixture(scope="module")
def bf16_model(tmp_path_factory):
    return models.write_m0(tmp_path_factory.mktemp("bf16") / "model", dtype=torch.bfloat16)


HUNDRED = {"lr": 5e-4, "scheduler": "constant", "warmup_ratio": 0, "weight_decay": 0, "epochs": 100,
           "gradient_accumulation": 1}


@pytest.fixture(scope="module")
def fp32_run(bf16_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fp32")
    data = chats(folder / "data", random_chats(4, seed=5))
    return train(bf16_model, data, folder / "project", batch_size=4, **HUNDRED).ok()


@pytest.mark.parametrize("ranks", [1, 2])
def test_br42_masters_are_fp32(bf16_model, fp32_run, tmp_path, project, ranks):
    data = chats(tmp_path / "data", random_chats(4, seed=5))
    run = train(bf16_model, data, project, mixed_precision="bf16", batch_size=4 // ranks, ranks=ranks,
                save_strategy="steps", save_steps=50, save_total_limit=5, **HUNDRED).ok()
    assert len(run.steps) == 100
    saved = weights(project)
    for name, tensor in saved.items():
        assert tensor.dtype == torch.bfloat16
        if "norm" in name:
            assert (tensor != 1).any(), name
    assert run.losses[-1] == pytest.approx(fp32_run.losses[-1], rel=0.02)
    assert run.losses[-1] < run.losses[0] - 0.5
    kinds = {entry["dtype"] for name, entry in header(project / "model.safetensors").items() if name != "__metadata__"}
    assert kinds == {"BF16"}


def test_br42_resume_keeps_the_masters(bf16_model, tmp_path, project):
    data = chats(tmp_path / "data", random_chats(4, seed=5))
    options = {**HUNDRED, "mixed_precision": "bf16", "batch_size": 4, "epochs": 20}
    straight = train(bf16_model, data, project, save_strategy="steps", save_steps=10, save_total_limit=5, **options).ok()
    again = train(bf16_model, data, tmp_path / "again", resume_from_checkpoint=project / "checkpoint-10", **options).ok()
    assert again.losses == straight.losses
    assert all(torch.equal(tensor, weights(project)[name]) for name, tensor in weights(again.project).items())
