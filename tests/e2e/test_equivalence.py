"""Gradient checkpointing and packing must not show in the numbers."""
import pytest

from fixtures.data import chats, random_chats, random_texts, texts
from fixtures.reading import adapter, difference, weights
from fixtures.runner import train

SIX = {"lr": 1e-3, "batch_size": 2, "gradient_accumulation": 2, "epochs": 2}  # 12 rows: 6 updates


@pytest.mark.parametrize("peft", [False, True])
def test_recomputation_changes_nothing(m0, tmp_path, peft):
    data = chats(tmp_path / "data", random_chats(12, seed=1))
    extra = {"peft": True, "lora_dropout": 0.2, "merge_adapter": False} if peft else {}
    on = train(m0, data, tmp_path / "on", **SIX, **extra).ok()
    off = train(m0, data, tmp_path / "off", "--disable-gradient-checkpointing", **SIX, **extra).ok()
    assert len(on.steps) == 6
    assert on.losses == pytest.approx(off.losses, rel=1e-7)
    assert on.column("grad_norm") == pytest.approx(off.column("grad_norm"), rel=1e-6)
    read = adapter if peft else weights
    assert difference(read(on.project), read(off.project)) < 1e-6


@pytest.mark.parametrize("write,rows", [(chats, random_chats(24, seed=2)), (texts, random_texts(24, seed=2))])
def test_packing_keeps_every_token_and_its_loss(m0, tmp_path, write, rows):
    """With rate 0 the sum of losses over the epoch is the same: no token sees a neighbour's text."""
    data = write(tmp_path / "data", rows)
    options = {"lr": 0, "batch_size": 1, "gradient_accumulation": 1, "block_size": 200}
    plain = train(m0, data, tmp_path / "plain", **options).ok()
    packed = train(m0, data, tmp_path / "packed", "--packing", **options).ok()
    assert len(packed.steps) < len(plain.steps) == 24
    for name in ("num_trained_tokens",):
        assert sum(packed.column(name)) == sum(plain.column(name))
    assert packed.steps[-1]["num_input_tokens_seen"] == plain.steps[-1]["num_input_tokens_seen"]

    def total(run):
        return sum(record["loss"] * record["num_trained_tokens"] for record in run.steps)
    assert total(packed) == pytest.approx(total(plain), rel=1e-6)


def test_packed_and_unpacked_updates_are_equal(m0, tmp_path):
    """All rows in one update: packing only changes how they lie in the micro-batches."""
    data = chats(tmp_path / "data", random_chats(12, seed=4))
    options = {"lr": 1e-3, "epochs": 4, "warmup_ratio": 0, "block_size": 200}
    plain = train(m0, data, tmp_path / "plain", batch_size=12, gradient_accumulation=1, **options).ok()
    packed = train(m0, data, tmp_path / "packed", "--packing", batch_size=1, gradient_accumulation=12, **options).ok()
    assert len(plain.steps) == len(packed.steps) == 4
    assert packed.losses == pytest.approx(plain.losses, rel=1e-6)
    assert difference(weights(plain.project), weights(packed.project)) < 1e-5
