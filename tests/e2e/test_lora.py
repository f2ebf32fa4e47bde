"""LoRA: BR-11 (merged = adapter + base), BR-16 (checkpointing over a frozen base), S-09 (target modules)."""
import json

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from fixtures import models
from fixtures.data import chats, random_chats
from fixtures.reading import adapter, difference, same_bits, weights
from fixtures.runner import run, train

LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
PROMPTS = [torch.tensor([[256, *f"prompt number {n} of ten".encode()]]) for n in range(10)]
TWENTY = {"peft": True, "lora_r": 4, "lora_alpha": 16, "lora_dropout": 0, "lr": 1e-2, "epochs": 10, "batch_size": 2,
          "gradient_accumulation": 1}  # 4 rows: 20 updates


def data_of(folder, rows=4):
    return chats(folder / "data", random_chats(rows, seed=11))


def logits(model):
    with torch.no_grad():
        return [model(ids).logits.float() for ids in PROMPTS]


def load(folder, dtype=torch.float32):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)


def test_br11_merged_equals_base_plus_adapter(m0, tmp_path, project):
    result = train(m0, data_of(tmp_path), project, "--merge-adapter", **TWENTY).ok()
    assert len(result.steps) == 20 and result.losses[-1] < result.losses[0] - 0.1
    merged = logits(load(project))
    together = logits(PeftModel.from_pretrained(load(m0), project / "adapter"))
    plain = logits(load(m0))
    assert max(float((a - b).abs().max()) for a, b in zip(merged, together)) < 1e-5
    assert max(float((a - b).abs().max()) for a, b in zip(merged, plain)) > 1e-2
    names = set(weights(project))
    assert names == set(weights(m0))
    assert "quantization_config" not in json.loads((project / "config.json").read_text())


def scaled_deltas(folder, scale):
    """Weight name -> scale * B @ A in fp64."""
    tensors, found = adapter(folder), {}
    for name, a in tensors.items():
        if ".lora_A." in name:
            b = tensors[name.replace(".lora_A.", ".lora_B.")]
            weight = name.removeprefix("base_model.model.").replace(".lora_A.weight", ".weight")
            found[weight] = scale * (b.double() @ a.double())
    return found


def test_br11_bf16_is_rounded_once(tmp_path, project):
    model = models.write_m0(tmp_path / "model", dtype=torch.bfloat16)
    train(model, data_of(tmp_path), project, "--merge-adapter", mixed_precision="bf16", **TWENTY).ok()
    base, merged, deltas = weights(model), weights(project), scaled_deltas(project / "adapter", 4)
    assert len(deltas) == 14
    for name, tensor in merged.items():
        assert tensor.dtype == torch.bfloat16
        if name not in deltas:
            assert torch.equal(tensor, base[name]), name
            continue
        exact = base[name].double() + deltas[name]
        assert torch.equal(tensor, exact.float().to(torch.bfloat16)), name


def test_merge_adapter_off_leaves_peft_files(m0, tmp_path, project):
    train(m0, data_of(tmp_path), project, merge_adapter=False, **TWENTY).ok()
    assert not (project / "model.safetensors").exists()
    config = json.loads((project / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["peft_type"]) == (4, 16, "LORA")
    assert sorted(config["target_modules"]) == sorted(LINEARS)
    together = PeftModel.from_pretrained(load(m0), project)
    assert any((a - b).abs().max() > 1e-3 for a, b in zip(logits(together), logits(load(m0))))


def test_adapter_does_not_depend_on_merging(m0, tmp_path):
    data = data_of(tmp_path)
    kept = train(m0, data, tmp_path / "kept", merge_adapter=False, **TWENTY).ok()
    merged = train(m0, data, tmp_path / "merged", "--merge-adapter", **TWENTY).ok()
    assert same_bits(adapter(kept.project), adapter(merged.project / "adapter"))


def test_merge_tool_gives_the_same_model(m0, tmp_path, project):
    train(m0, data_of(tmp_path), project, **TWENTY).ok()
    out = tmp_path / "tool"
    run("tools", "merge-llm-adapter", "--base-model-path", m0, "--adapter-path", project / "adapter",
        "--output-folder", out).ok()
    assert same_bits(weights(out), weights(project))


@pytest.fixture(scope="module")
def one_update(m0, tmp_path_factory):
    """Adapters after one update, with and without recomputation, on one and two ranks."""
    folder = tmp_path_factory.mktemp("br16")
    data = data_of(folder, rows=8)
    options = {"peft": True, "lora_r": 4, "lora_dropout": 0, "lr": 1e-3, "warmup_ratio": 0, "merge_adapter": False,
               "batch_size": 1}
    found = {}
    for ranks in (1, 2):
        for words in ((), ("--disable-gradient-checkpointing",)):
            result = train(m0, data, folder / f"{ranks}-{len(words)}", *words, ranks=ranks,
                           gradient_accumulation=8 // ranks, **options).ok()
            assert len(result.steps) == 1
            found[ranks, len(words)] = adapter(result.project)
    return found


@pytest.mark.parametrize("ranks", [1, 2])
def test_br16_recomputation_changes_nothing(one_update, ranks):
    assert difference(one_update[ranks, 0], one_update[ranks, 1]) < 1e-6


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("off", [0, 1])
def test_br16_every_layer_is_trained(one_update, ranks, off):
    b = {name: tensor for name, tensor in one_update[ranks, off].items() if ".lora_B." in name}
    assert len(b) == 14
    assert all((tensor != 0).any() for tensor in b.values())
    assert difference(one_update[1, 0], one_update[ranks, off]) < 1e-5


@pytest.mark.parametrize("targets,expected", [
    ("all-linear", LINEARS), ("q_proj", ("q_proj",)), ("q_proj,v_proj", ("q_proj", "v_proj")),
    (" q_proj , v_proj ", ("q_proj", "v_proj")), (r".*self_attn\.(q|k)_proj", ("q_proj", "k_proj")),
])
def test_s09_target_modules(m0, tmp_path, project, targets, expected):
    options = {**TWENTY, "epochs": 1, "target_modules": targets, "merge_adapter": False}
    train(m0, data_of(tmp_path), project, **options).ok()
    named = {name.split(".")[-3] for name in adapter(project)}
    assert named == set(expected)
    PeftModel.from_pretrained(load(m0), project)  # its adapter_config names the same modules


@pytest.mark.parametrize("targets", ["qproj", "q_proj,nothing", "[q_proj", ""])
def test_s09_bad_target_modules(m0, tmp_path, project, targets):
    result = train(m0, data_of(tmp_path), project, **{**TWENTY, "target_modules": targets})
    result.refused("target")
    assert not targets or "q_proj" in result.output


def test_quick_start_defaults(m0, tmp_path, project):
    train(m0, data_of(tmp_path), project, "--peft").ok()
    config = json.loads((project / "adapter" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (16, 32, 0.05)
    assert all(t.shape[0] == 16 for name, t in adapter(project / "adapter").items() if ".lora_A." in name)


def test_initial_adapter_is_the_one_of_a_run_without_learning(m0, tmp_path):
    """B = 0, A uniform within 1 / sqrt(fan in), the same for the same seed and another for another."""
    options = {**TWENTY, "lr": 0, "epochs": 1, "merge_adapter": False}
    runs = [train(m0, data_of(tmp_path), tmp_path / f"run{i}", seed=seed, **options).ok() for i, seed in enumerate((42, 42, 7))]
    first, second, other = (adapter(result.project) for result in runs)
    assert same_bits(first, second) and not same_bits(first, other)
    for name, tensor in first.items():
        if ".lora_B." in name:
            assert not tensor.any()
        else:
            bound = tensor.shape[1] ** -0.5
            assert 0.8 * bound < tensor.abs().max() <= bound * 1.0001
            assert float(tensor.std()) == pytest.approx(bound / 3 ** 0.5, rel=0.25)
