"""What was saved means the same elsewhere: transformers and PEFT give the executable's own logits."""
import torch
import pytest
from peft import PeftModel
from transformers import AutoModelForCausalLM

from fixtures import models
from fixtures.data import chats, random_chats
from fixtures.runner import train
from fixtures.tools import logits

ROWS = [[256, *b"hello"], list(range(100)), [*b"once upon a time there was a river"]]
TRAINING = {"lr": 5e-3, "epochs": 3, "batch_size": 2, "gradient_accumulation": 1}


def of(model):
    model.eval()
    with torch.no_grad():
        return [model(torch.tensor([ids])).logits[0].float() for ids in ROWS]


def worst(first, second):
    return max(float((a - b).abs().max()) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("kind", ["untied", "tied", "head_dim", "attention_bias", "mlp_bias", "rope_llama3", "sharded"])
def test_full(tmp_path, project, kind):
    model = models.write_random_llama(tmp_path / "model", kind)
    train(model, chats(tmp_path / "data", random_chats(8, seed=2)), project, **TRAINING).ok()
    ours = logits(project, ROWS, tmp_path)
    theirs = of(AutoModelForCausalLM.from_pretrained(project, dtype=torch.float32))
    scale = max(1.0, max(float(t.abs().max()) for t in theirs))
    assert worst(ours, theirs) < 1e-5 * scale
    assert worst(ours, logits(model, ROWS, tmp_path)) > 1e-2  # training changed them


@pytest.mark.parametrize("kind", ["untied", "tied", "mqa"])
def test_adapter(tmp_path, project, kind):
    model = models.write_random_llama(tmp_path / "model", kind)
    data = chats(tmp_path / "data", random_chats(8, seed=2))
    train(model, data, project, "--peft", lora_r=4, lora_dropout=0, **TRAINING).ok()
    merged = logits(project, ROWS, tmp_path)
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    together = of(PeftModel.from_pretrained(base, project / "adapter"))
    scale = max(1.0, max(float(t.abs().max()) for t in together))
    assert worst(merged, together) < 1e-5 * scale
    assert worst(merged, of(AutoModelForCausalLM.from_pretrained(project, dtype=torch.float32))) < 1e-5 * scale
    assert worst(merged, logits(model, ROWS, tmp_path)) > 1e-2
