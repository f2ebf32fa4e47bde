"""Training itself: twenty updates against a plain PyTorch loop over the same rows."""
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from fixtures import models, smollm2 as smollm
from fixtures.data import chats, random_chats
from fixtures.reading import adapter, difference, weights
from fixtures.reference import Loop
from fixtures.runner import train
from fixtures.tokenizers import chat_ids

LORA = {"peft": True, "lora_r": 8, "lora_alpha": 16, "lora_dropout": 0, "merge_adapter": False}


def flags(loop):
    return {"lr": loop.lr, "epochs": loop.epochs, "batch_size": loop.batch_size, "ranks": loop.ranks, "seed": loop.seed,
            "gradient_accumulation": loop.accumulation, "warmup_ratio": loop.warmup_ratio,
            "weight_decay": loop.weight_decay, "max_grad_norm": loop.max_grad_norm, "mixed_precision": None}


def compare(run, loop):
    assert len(run.steps) == len(loop.losses)
    assert run.column("learning_rate") == pytest.approx(loop.rates, rel=1e-9, abs=1e-15)
    assert run.losses == pytest.approx(loop.losses, rel=1e-4)
    assert run.column("grad_norm") == pytest.approx(loop.norms, rel=1e-3)


def with_initial_adapter(base, model, data, folder, loop, timeout=180):
    """PEFT over `base`, starting from the A and B that the executable draws for this seed."""
    initial = train(model, data, folder / "initial", **{**flags(loop), **LORA, "lr": 0, "epochs": 1}, timeout=timeout).ok()
    return PeftModel.from_pretrained(base, initial.project, is_trainable=True)


def named_like_saved(model):
    """PEFT's state under the names of adapter_model.safetensors."""
    return {name.replace(".default.", "."): p.detach() for name, p in model.named_parameters() if "lora_" in name}


# SmolLM2's proportions (9 heads over 3, tied, many layers for the width), small
SMALL = dict(hidden_size=72, intermediate_size=192, num_hidden_layers=6, num_attention_heads=9, num_key_value_heads=3,
             tie_word_embeddings=True, rope_theta=100000.0, rms_norm_eps=1e-5)
SHAPES = {
    "smollm2-like": SMALL,
    "untied": {**SMALL, "tie_word_embeddings": False},
    "biases": {**SMALL, "attention_bias": True, "mlp_bias": True, "num_hidden_layers": 2},
}
LOOPS = {
    "plain": Loop(lr=2e-3, epochs=2, batch_size=2),  # 20 rows: 20 updates
    "accumulated": Loop(lr=2e-3, epochs=10, batch_size=2, accumulation=5, warmup_ratio=0),
    "decay": Loop(lr=2e-3, epochs=2, batch_size=2, weight_decay=0.1, max_grad_norm=0.3),
    "no clipping": Loop(lr=2e-3, epochs=2, batch_size=2, max_grad_norm=0.0, seed=7),
    "two ranks": Loop(lr=2e-3, epochs=4, batch_size=2, ranks=2),
}


@pytest.fixture(scope="module", params=SHAPES)
def small(request, tmp_path_factory):
    config = models.llama_config(**SHAPES[request.param])
    folder = tmp_path_factory.mktemp("small") / "model"
    return models.write_model(folder, config, models.random_weights(config, seed=3, std=0.06))


CONVERSATIONS = random_chats(20, seed=31)
ROWS = [chat_ids(messages) for messages in CONVERSATIONS]


@pytest.mark.parametrize("name", LOOPS)
def test_full(small, tmp_path, project, name):
    loop = Loop(**{k: getattr(LOOPS[name], k) for k in ("lr", "epochs", "batch_size", "accumulation", "ranks",
                                                        "warmup_ratio", "weight_decay", "max_grad_norm", "seed")})
    run = train(small, chats(tmp_path / "data", CONVERSATIONS), project, **flags(loop)).ok()
    model = AutoModelForCausalLM.from_pretrained(small, dtype=torch.float32)
    loop.train(model, ROWS)
    assert len(loop.losses) == 20 and loop.losses[-1] < loop.losses[0] - 0.2
    compare(run, loop)
    theirs = {n: t for n, t in model.state_dict().items() if n in weights(project)}
    assert difference(weights(project), theirs) < 5e-4  # a tenth of what 20 updates at this rate can move a weight


@pytest.mark.parametrize("name", ["plain", "accumulated", "decay"])
def test_lora(small, tmp_path, project, name):
    source = LOOPS[name]
    loop = Loop(lr=1e-2, epochs=source.epochs, batch_size=2, accumulation=source.accumulation,
                warmup_ratio=source.warmup_ratio, weight_decay=source.weight_decay, max_grad_norm=source.max_grad_norm)
    data = chats(tmp_path / "data", CONVERSATIONS)
    base = AutoModelForCausalLM.from_pretrained(small, dtype=torch.float32)
    model = with_initial_adapter(base, small, data, tmp_path, loop)
    run = train(small, data, project, **flags(loop), **LORA).ok()
    loop.train(model, ROWS)
    compare(run, loop)
    assert difference(adapter(project), named_like_saved(model)) < 2e-3


# Random words: the loss stays well above 0, so that a relative tolerance means something.
SHORT = random_chats(20, seed=5, user=(2, 4), assistant=(4, 10))


@pytest.mark.parametrize("peft", [False, True], ids=["full", "lora"])
def test_smollm2(smollm2, tmp_path, project, peft):
    loop = Loop(lr=1e-3 if peft else 1e-4, epochs=1, batch_size=1)  # 20 rows of about 60 tokens: 20 updates
    data = chats(tmp_path / "data", SHORT)
    extra = LORA if peft else {}
    run = train(smollm2, data, project, **flags(loop), **extra, timeout=600).ok()
    tokenizer, model = smollm.load_tokenizer(smollm2), smollm.load_model(smollm2)
    if peft:
        model = with_initial_adapter(model, smollm2, data, tmp_path, loop, timeout=600)
    rows = [smollm.chat_row(tokenizer, messages) for messages in SHORT]
    loop.train(model, rows)
    assert loop.losses[-1] < loop.losses[0]
    compare(run, loop)
    if peft:
        assert difference(adapter(project), named_like_saved(model)) < 1e-3
