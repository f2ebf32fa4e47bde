"""The number of ranks must not show in the numbers: BR-22 and equality over 1, 2, 3 and 4 ranks."""
import pytest

from fixtures import models
from fixtures.data import chats, exchange, random_chats, texts
from fixtures.reading import adapter, difference, weights
from fixtures.runner import train

# (batch, accumulation, ranks), every one of them 12 rows an update
SHAPES = [(1, 12, 1), (12, 1, 1), (1, 6, 2), (1, 4, 3), (1, 3, 4), (3, 1, 4)]
FULL = {"lr": 1e-3}
LORA = {"lr": 1e-2, "peft": True, "lora_r": 4, "lora_alpha": 8, "lora_dropout": 0.1, "merge_adapter": False}


@pytest.fixture(scope="module", params=[FULL, LORA], ids=["full", "lora"])
def family(request, m0, tmp_path_factory):
    """The same 8 updates at every shape: 44 rows, two epochs, 8 rows in the last window of each."""
    folder = tmp_path_factory.mktemp("ranks")
    data = chats(folder / "data", random_chats(44, seed=3))
    runs = {}
    for batch, accumulation, ranks in SHAPES:
        runs[batch, accumulation, ranks] = train(
            m0, data, folder / f"{batch}-{accumulation}-{ranks}", "--check-replicas", epochs=2, batch_size=batch,
            gradient_accumulation=accumulation, ranks=ranks, **request.param).ok()
    return runs


def saved(run):
    return adapter(run.project) if (run.project / "adapter_model.safetensors").exists() else weights(run.project)


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_losses_and_norms_do_not_depend_on_ranks(family, shape):
    one, many = family[SHAPES[0]], family[shape]
    assert len(one.steps) == len(many.steps) == 8
    assert many.losses == pytest.approx(one.losses, rel=1e-6)
    assert many.column("grad_norm") == pytest.approx(one.column("grad_norm"), rel=1e-5)
    for name in ("num_trained_tokens", "num_input_tokens_seen", "learning_rate", "epoch", "step"):
        assert many.column(name) == pytest.approx(one.column(name), rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_weights_do_not_depend_on_ranks(family, shape):
    assert difference(saved(family[SHAPES[0]]), saved(family[shape])) < 1e-5


def test_training_moved_the_weights(family):
    losses = family[SHAPES[0]].losses
    assert losses[-1] < losses[0] - 1e-3


@pytest.mark.parametrize("shape", [s for s in SHAPES if s[2] > 1])
def test_replicas_are_checked_after_every_update(family, shape):
    sums = family[shape].column("weights_checksum")
    assert all(isinstance(value, str) and value for value in sums)
    assert len(set(sums)) > len(sums) // 2  # they follow the weights (update 1 has rate 0)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("accumulation", [1, 2])
def test_br22_uneven_packs(m0, tmp_path, project, ranks, accumulation):
    """Seven rows make three packs of 64: 32+31, 30+30, 20+20+20 tokens. With lr 0 every pack keeps its loss."""
    letters = (30, 18, 28, 29, 18, 28, 18)  # tokens: letters + bos + eos
    data = texts(tmp_path / "data", ["abcdefghij"[i % 10] * n for i, n in enumerate(letters)])
    options = {"lr": 0, "block_size": 64, "batch_size": 1, "epochs": 2}
    alone = train(m0, data, tmp_path / "alone", "--packing", gradient_accumulation=1, ranks=1, **options).ok()
    assert len(alone.steps) == 6
    packs = {record["num_trained_tokens"]: record["loss"] for record in alone.steps}
    assert sorted(packs) == [57, 58, 61]

    run = train(m0, data, project, "--packing", gradient_accumulation=accumulation, ranks=ranks, timeout=60, **options).ok()
    window = ranks * accumulation
    updates = -(-3 // window)
    assert len(run.steps) == 2 * updates
    for epoch in range(2):
        order = [record["num_trained_tokens"] for record in alone.steps[3 * epoch:3 * epoch + 3]]
        for update in range(updates):
            sizes = order[update * window:(update + 1) * window]
            record = run.steps[epoch * updates + update]
            assert record["num_trained_tokens"] == sum(sizes)
            assert record["loss"] == pytest.approx(sum(n * packs[n] for n in sizes) / sum(sizes), rel=1e-6)


@pytest.mark.parametrize("ranks", [2, 4])
def test_br22_a_row_without_labels(mb, tmp_path, project, ranks):
    rows = [exchange("q", "a" * n) for n in (1, 2, 3, 4)] + [exchange("q" * 60, "a")]
    data = chats(tmp_path / "data", rows)
    run = train(mb, data, project, lr=0, model_max_length=40, batch_size=1, gradient_accumulation=1, ranks=ranks,
                timeout=60).ok()
    assert sum(run.column("num_trained_tokens")) == 2 + 3 + 4 + 5
    total = sum(r["loss"] * r["num_trained_tokens"] for r in run.steps)
    assert total == pytest.approx(sum(models.LN_VOCAB + (k - 1) + 6.0308292 for k in (1, 2, 3, 4)), rel=1e-6)


def test_more_ranks_than_rows(mb, tmp_path, project):
    data = chats(tmp_path / "data", [models.SAMPLE_A, models.SAMPLE_B])
    run = train(mb, data, project, lr=0, batch_size=2, gradient_accumulation=2, ranks=3, epochs=2).ok()
    assert run.losses == pytest.approx([models.MEAN_AB] * 2, abs=2e-6)


def test_forced_processes_by_environment(mb, tmp_path, project):
    data = chats(tmp_path / "data", [models.SAMPLE_A, models.SAMPLE_B])
    run = train(mb, data, project, lr=0, batch_size=1, gradient_accumulation=1,
                env={"AUTOTRAIN_FORCE_NUM_PROCESSES": 2}).ok()
    assert run.losses == pytest.approx([models.MEAN_AB], abs=2e-6)
