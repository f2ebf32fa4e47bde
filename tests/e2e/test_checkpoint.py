"""Saving and resuming: N updates straight = N/2, stop, and N/2 more; what is kept; what is refused (S-13)."""
import json
import shutil

import pytest

from fixtures.data import chats, random_chats
from fixtures.reading import adapter, checkpoints, difference, same_bits, weights
from fixtures.runner import train

ROWS = 10
TEN = {"lr": 1e-3, "batch_size": 2, "gradient_accumulation": 1, "epochs": 2, "save_strategy": "steps", "save_steps": 3,
       "save_total_limit": 10}  # 5 updates an epoch: checkpoint-3 and -9 lie inside one
KINDS = {"full": {}, "lora": {"peft": True, "lora_r": 4, "lora_dropout": 0.1, "merge_adapter": False}}
SMALL_FILES = ("trainer_state.json", "manifest.json", "optimizer.safetensors", "config.json", "tokenizer.json",
               "tokenizer_config.json")


def result_of(folder):
    return adapter(folder) if (folder / "adapter_model.safetensors").exists() else weights(folder)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return chats(tmp_path_factory.mktemp("resume") / "data", random_chats(ROWS, seed=21))


@pytest.fixture(scope="module", params=KINDS)
def straight(request, m0, data, tmp_path_factory):
    run = train(m0, data, tmp_path_factory.mktemp(request.param) / "project", **TEN, **KINDS[request.param]).ok()
    run.kind = request.param
    assert len(run.steps) == 10
    return run


@pytest.mark.parametrize("number", [3, 6, 9])
def test_resume_is_bitwise(m0, data, straight, project, number):
    run = train(m0, data, project, resume_from_checkpoint=straight.project / f"checkpoint-{number}", **TEN,
                **KINDS[straight.kind]).ok()
    keys = ("step", "epoch", "loss", "grad_norm", "learning_rate", "num_trained_tokens", "num_input_tokens_seen")
    for key in keys:
        assert run.column(key) == straight.column(key), key
    assert same_bits(result_of(project), result_of(straight.project))


def test_resume_auto_takes_the_newest(m0, data, straight, project):
    for number in (3, 6):
        shutil.copytree(straight.project / f"checkpoint-{number}", project / f"checkpoint-{number}")
    run = train(m0, data, project, resume_from_checkpoint="auto", **TEN, **KINDS[straight.kind]).ok()
    assert "checkpoint-6" in run.output
    assert run.losses == straight.losses
    assert same_bits(result_of(project), result_of(straight.project))
    assert checkpoints(project) == [3, 6, 9, 10] or checkpoints(project) == [3, 6, 9]


@pytest.mark.parametrize("ranks", [2])
def test_resume_on_another_number_of_ranks(m0, data, straight, project, ranks):
    options = {**TEN, "batch_size": 1, "ranks": ranks}
    run = train(m0, data, project, resume_from_checkpoint=straight.project / "checkpoint-6", **options,
                **{**KINDS[straight.kind]}).ok()
    assert run.losses == pytest.approx(straight.losses, rel=1e-5)
    assert difference(result_of(project), result_of(straight.project)) < 1e-5


def test_checkpoints_are_complete(straight):
    for number in (3, 6, 9):
        folder = straight.project / f"checkpoint-{number}"
        model = "adapter_model.safetensors" if straight.kind == "lora" else "model.safetensors"
        for name in (model, *SMALL_FILES):
            assert (folder / name).stat().st_size > 0, f"{folder.name}/{name}"
        state = json.loads((folder / "trainer_state.json").read_text())
        assert state["global_step"] == number
        assert [record["step"] for record in state["log_history"] if "loss" in record] == list(range(1, number + 1))
        listed = (folder / "manifest.json").read_text()
        for file in folder.iterdir():
            if file.name != "manifest.json":
                assert file.name in listed, f"manifest.json does not list {file.name}"
        foreign = [p.name for p in folder.rglob("*") if p.suffix in (".pt", ".pth", ".bin", ".pkl")]
        assert not foreign


def test_checkpoint_of_a_full_run_is_a_model(straight):
    if straight.kind != "full":
        pytest.skip("an adapter's checkpoint holds the adapter alone")
    from transformers import AutoModelForCausalLM
    AutoModelForCausalLM.from_pretrained(straight.project / "checkpoint-9")


@pytest.mark.parametrize("strategy,options,kept", [
    ("no", {}, []),
    ("epoch", {"save_total_limit": 5}, [5, 10]),
    ("epoch", {}, [10]),
    ("steps", {"save_steps": 4, "save_total_limit": 5}, [4, 8]),
    ("steps", {"save_steps": 2, "save_total_limit": 2}, [8, 10]),
    ("steps", {"save_steps": 3, "save_total_limit": 1}, [9]),
])
def test_save_strategy_and_limit(m0, data, project, strategy, options, kept):
    words = {**TEN, "save_strategy": strategy, "save_steps": None, "save_total_limit": None, **options}
    train(m0, data, project, **words).ok()
    found = checkpoints(project)
    assert [n for n in found if n != 10 or 10 in kept] == kept
    others = [p.name for p in project.iterdir() if p.is_dir() and not p.name.startswith("checkpoint-")]
    assert not [name for name in others if "tmp" in name or "checkpoint" in name]


def test_s13_no_such_checkpoint(m0, data, project):
    train(m0, data, project, resume_from_checkpoint="/no/such", **TEN).refused("/no/such")


def test_s13_auto_with_none_starts_fresh_and_says_so(m0, data, straight, project):
    run = train(m0, data, project, resume_from_checkpoint="auto", **TEN, **KINDS[straight.kind]).ok()
    assert "no checkpoint" in run.output.lower()
    assert run.losses == straight.losses


def test_s13_fresh_run_into_a_used_folder_says_what_it_does(m0, data, project):
    short = {**TEN, "epochs": 1}
    first = train(m0, data, project, **short).ok()
    second = train(m0, data, project, **short)
    if second.code == 0:
        assert second.losses == first.losses and len(second.steps) == 5
    else:
        second_words = second.output.lower()
        assert second.code == 2 and ("exists" in second_words or "already" in second_words)
    assert str(project) in second.output


def damage_model(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:file.stat().st_size // 2])
    return file.name


def damage_optimizer(folder):
    (folder / "optimizer.safetensors").write_bytes(b"")
    return "optimizer.safetensors"


def damage_state(folder):
    (folder / "trainer_state.json").unlink()
    return "trainer_state.json"


def damage_one_byte(folder):
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-7] ^= 1
    file.write_bytes(content)
    return file.name


@pytest.mark.parametrize("damage", [damage_model, damage_optimizer, damage_state, damage_one_byte])
def test_br19_damaged_checkpoint(m0, data, tmp_path, project, damage):
    whole = train(m0, data, tmp_path / "whole", **TEN).ok()
    for number in (3, 6):
        shutil.copytree(whole.project / f"checkpoint-{number}", project / f"checkpoint-{number}")
    name = damage(project / "checkpoint-6")
    other = tmp_path / "other"
    explicit = train(m0, data, other, resume_from_checkpoint=project / "checkpoint-6", **TEN)
    explicit.refused(name, "checkpoint-6")
    run = train(m0, data, project, resume_from_checkpoint="auto", **TEN).ok()
    assert "checkpoint-6" in run.output and "checkpoint-3" in run.output
    assert run.losses == whole.losses
    assert same_bits(weights(project), weights(whole.project))


def test_resume_with_another_adapter_shape_is_refused(m0, data, straight, project):
    if straight.kind != "lora":
        pytest.skip("for adapters")
    options = {**TEN, **KINDS["lora"], "lora_r": 8}
    result = train(m0, data, project, resume_from_checkpoint=straight.project / "checkpoint-3", **options)
    assert result.code != 0
    assert "checkpoint-3" in result.output
