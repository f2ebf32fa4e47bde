"""The forward pass: logits of every supported shape against transformers."""
import pytest
import torch
from transformers import AutoModelForCausalLM

from fixtures import models, smollm2 as smollm
from fixtures.tools import logits

ROWS = [[256], [256, *b"hello, world"], list(range(200)), [*b"the same text twice " * 12], [263, 0, 263, 1]]


def reference(model, rows):
    model.eval()
    with torch.no_grad():
        return [model(torch.tensor([ids])).logits[0].float() for ids in rows]


def worst(ours, theirs):
    for one, two in zip(ours, theirs, strict=True):
        assert one.shape == two.shape and one.dtype == torch.float32
    return max(float((one - two).abs().max()) for one, two in zip(ours, theirs))


@pytest.mark.parametrize("kind", models.RANDOM_LLAMAS)
def test_random_llamas(tmp_path, kind):
    folder = models.write_random_llama(tmp_path / "model", kind)
    theirs = reference(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), ROWS)
    scale = max(float(t.abs().max()) for t in theirs)
    assert scale > 0.5, "too small to show a mistake"
    assert worst(logits(folder, ROWS, tmp_path), theirs) < 1e-5 * max(1.0, scale)


def test_the_shapes_differ_from_one_another(tmp_path):
    """A setting that were ignored by both sides would pass above: it must change the logits of the same weights."""
    def of(kind):
        return reference(AutoModelForCausalLM.from_pretrained(models.write_random_llama(tmp_path / kind, kind)), ROWS[2:3])
    plain = of("untied")
    for kind in ("rope_theta", "rope_llama3", "rope_linear", "eps"):
        assert worst(of(kind), plain) > 1e-3, kind
    assert worst(of("rope_llama3"), of("new_spelling")) == 0


def test_smollm2(smollm2, tmp_path):
    tokenizer = smollm.load_tokenizer(smollm2)
    texts = ["The capital of France is Paris.", "def add(a, b):\n    return a + b\n", "1 2 3 4 5 6 7 8 9 10 " * 8]
    rows = [tokenizer(text)["input_ids"] for text in texts]
    theirs = reference(smollm.load_model(smollm2), rows)
    assert worst(logits(smollm2, rows, tmp_path), theirs) < 2e-4
