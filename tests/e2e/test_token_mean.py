"""BR-05 and BR-46: the loss is the sum over trained tokens of the whole update divided by their number."""
import pytest

from fixtures import models
from fixtures.data import chats, exchange
from fixtures.reading import difference, weights
from fixtures.runner import train

SHAPES = [(2, 1, 1), (1, 2, 1), (1, 1, 2)]  # batch, accumulation, ranks


@pytest.fixture(scope="module")
def mixed(mb, tmp_path_factory):
    """Results of samples A and B in one update, by shape."""
    folder = tmp_path_factory.mktemp("mixed")
    data = chats(folder / "data", [models.SAMPLE_A, models.SAMPLE_B])
    return {shape: train(mb, data, folder / f"run{i}", lr=0, batch_size=shape[0], gradient_accumulation=shape[1],
                         ranks=shape[2]).ok() for i, shape in enumerate(SHAPES)}


@pytest.mark.parametrize("shape", SHAPES)
def test_br05_token_mean(mixed, shape):
    (record,) = mixed[shape].steps
    assert record["loss"] == pytest.approx(models.MEAN_AB, abs=2e-6)
    assert record["num_trained_tokens"] == models.TOKENS_A + models.TOKENS_B


def test_br05_gradient_norm_does_not_depend_on_the_shape(mixed):
    norms = [mixed[shape].steps[0]["grad_norm"] for shape in SHAPES]
    assert norms[0] > 0
    assert norms[1:] == pytest.approx([norms[0]] * 2, rel=1e-5)


def test_br05_weights_after_one_sgd_update(m0, tmp_path):
    rows = [exchange("q", "a" * length) for length in (1, 5, 17, 60)]
    data = chats(tmp_path / "data", rows)
    results = {}
    for batch, accumulation in ((4, 1), (2, 2), (1, 4)):
        run = train(m0, data, tmp_path / f"run{batch}", optimizer="sgd", lr=0.1, warmup_ratio=0, batch_size=batch,
                    gradient_accumulation=accumulation).ok()
        assert len(run.steps) == 1
        results[batch] = weights(run.project)
    assert difference(weights(m0), results[4]) > 1e-4
    assert difference(results[4], results[2]) < 1e-6
    assert difference(results[4], results[1]) < 1e-6


@pytest.mark.parametrize("ranks", [1, 2])
def test_br46_short_last_window(mb, tmp_path, project, ranks):
    """Five equal rows, window of four: 8, 2, 8, 2 tokens, and the short window is not a quarter of the others."""
    data = chats(tmp_path / "data", [models.SAMPLE_A] * 5)
    run = train(mb, data, project, lr=0, batch_size=1, gradient_accumulation=4 // ranks, epochs=2, ranks=ranks).ok()
    assert run.column("num_trained_tokens") == [8, 2, 8, 2]
    assert run.losses == pytest.approx([models.MEAN_A] * 4, abs=2e-6)
    assert run.column("grad_norm") == pytest.approx([run.steps[0]["grad_norm"]] * 4, rel=1e-6)
    assert run.column("epoch")[-1] == pytest.approx(2.0)
    assert [record["step"] for record in run.steps] == [1, 2, 3, 4]
