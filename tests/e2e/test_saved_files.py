"""What a project folder holds and that others can load it: S-15, S-22, S-23, S-19, BR-54, secrets."""
import json
import pickle
import shutil

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from fixtures import models, tokenizers
from fixtures.data import chats, exchange, random_chats, texts
from fixtures.reading import files_holding, header, same_bits, weights
from fixtures.runner import family, run, start, train, training_command
from fixtures.tokenizers import C0, C0B, C0G, write_tokenizer
from fixtures.tools import tokenize


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return chats(tmp_path_factory.mktemp("saved") / "data", random_chats(4, seed=1))


def loads_whole(folder):
    model, report = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    return model


SAVING = {"save_strategy": "epoch", "epochs": 1}


@pytest.mark.parametrize("kind", ["untied", "tied", "attention_bias", "sharded", "rope_llama3"])
def test_s15_full_model_loads(tmp_path, data, project, kind):
    model = models.write_random_llama(tmp_path / "model", kind)
    train(model, data, project, lr=0, **SAVING).ok()
    assert same_bits(weights(project), weights(model))
    loads_whole(project)
    loads_whole(project / "checkpoint-1")
    for file in project.rglob("*.safetensors"):
        assert header(file)["__metadata__"]["format"] == "pt", file
    AutoTokenizer.from_pretrained(project)


@pytest.mark.parametrize("merge", [True, False])
def test_s15_adapter_loads(m0, data, project, merge):
    train(m0, data, project, "--peft", lr=1e-3, merge_adapter=merge, **SAVING).ok()
    PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(m0), project / "adapter" if merge else project)
    PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(m0), project / "checkpoint-1")
    for file in project.rglob("*.safetensors"):
        assert header(file)["__metadata__"]["format"] == "pt", file
    if merge:
        loads_whole(project)


def test_project_folder(m0, data, project):
    result = train(m0, data, project, **SAVING).ok()
    for name in ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "trainer_state.json",
                 "training_params.json", "README.md"):
        assert (project / name).stat().st_size > 0, name
    streams = [text.strip().splitlines() for text in (result.stdout, result.stderr) if text.strip()]
    assert any(str(project) in lines[0] for lines in streams) and any(str(project) in lines[-1] for lines in streams)
    card = (project / "README.md").read_text()
    assert card.startswith("---\n") and "aitraining" in card


def test_s22_huge_model_max_length(tmp_path, project):
    model = models.write_m0(tmp_path / "model", model_max_length=1000000000000000019884624838656)
    data = texts(tmp_path / "data", ["a" * 300])
    result = train(model, data, project, lr=0).ok()
    assert result.steps[0]["num_input_tokens_seen"] == 256
    assert result.steps[0]["num_trained_tokens"] == 255
    assert "256" in result.output


def test_a_real_model_max_length_limits(tmp_path, project):
    model = models.write_m0(tmp_path / "model", model_max_length=100)
    data = texts(tmp_path / "data", ["a" * 300])
    assert train(model, data, project, lr=0).ok().steps[0]["num_input_tokens_seen"] == 100


NAMED = [{"name": "tool_use", "template": C0B}, {"name": "default", "template": C0}]
TEMPLATES = {
    "config": ({"template": C0B}, True), "file": ({"template": None, "template_file": C0B}, True),
    "file wins": ({"template": C0, "template_file": C0B}, True), "named": ({"template": NAMED}, False),
}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_s23_where_the_template_stands(tmp_path, project, kind):
    options, bos = TEMPLATES[kind]
    model = models.write_m0(tmp_path / "model", **options)
    messages = exchange("hi", "yo")
    (row,) = tokenize(model, [{"messages": messages}], tmp_path)
    assert (row["ids"], row["trained"]) == tokenizers.chat_ids(messages, bos)
    train(model, chats(tmp_path / "data", [messages]), project, lr=0).ok()
    for file in model.iterdir():
        if "token" in file.name or "template" in file.name:
            assert (project / file.name).read_bytes() == file.read_bytes()
    saved = AutoTokenizer.from_pretrained(project)
    assert saved.apply_chat_template(messages, return_dict=True)["input_ids"] == row["ids"]


def test_generation_tags_survive(tmp_path, project):
    model = models.write_m0(tmp_path / "model", template=C0G)
    train(model, chats(tmp_path / "data", [exchange("hi", "yo")]), project, lr=0).ok()
    assert "generation" in json.loads((project / "tokenizer_config.json").read_text())["chat_template"]


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_br54_bin_only_model_is_refused(m0, tmp_path, data, project):
    model = shutil.copytree(m0, tmp_path / "model")
    (model / "model.safetensors").unlink()
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "pwned")))
    train(model, data, project).refused("pytorch_model.bin", "safetensors")
    assert not (tmp_path / "pwned").exists()


def test_br54_bin_beside_safetensors_is_ignored(m0, tmp_path, data, project):
    model = shutil.copytree(m0, tmp_path / "model")
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "pwned")))
    train(model, data, project, lr=0).ok()
    assert same_bits(weights(project), weights(m0))
    assert not (tmp_path / "pwned").exists()


def test_br54_foreign_checkpoint_is_not_unpickled(m0, tmp_path, data, project):
    folder = tmp_path / "checkpoint-2"
    folder.mkdir()
    shutil.copy(m0 / "model.safetensors", folder)
    for name in ("optimizer.pt", "rng_state.pth", "training_args.bin", "scheduler.pt"):
        (folder / name).write_bytes(pickle.dumps(Bomb(tmp_path / "pwned")))
    train(m0, data, project, resume_from_checkpoint=folder).refused("checkpoint-2")
    assert not (tmp_path / "pwned").exists()


def test_br54_remote_code_is_never_run(m0, tmp_path, data, project):
    model = shutil.copytree(m0, tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    config.update(architectures=["MyLlama"], model_type="mine", auto_map={"AutoModelForCausalLM": "modeling.MyLlama"})
    (model / "config.json").write_text(json.dumps(config))
    (model / "modeling.py").write_text(f"open({str(tmp_path / 'pwned')!r}, 'w')\n")
    train(model, data, project).refused("config.json", "MyLlama")
    assert not (tmp_path / "pwned").exists()


SECRETS = ("hf_" + "FAKE" * 8 + "01", "FAKEwandb0123456789")


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("by", ["flag", "environment"])
def test_br32_secrets_are_nowhere(m0, data, project, ranks, by):
    words = ("--token", SECRETS[0], "--wandb-token", SECRETS[1]) if by == "flag" else ()
    env = {"HF_TOKEN": SECRETS[0], "WANDB_API_KEY": SECRETS[1]} if by == "environment" else {}
    command = training_command(m0, data, project, *words, ranks=ranks, epochs=20, save_strategy="epoch")
    process = start(command, env=env)
    seen = []
    for line in process.stdout:
        seen.append(line)
        if "'loss'" in line:
            for member in family(process)[1:]:  # the command itself is what the user typed
                assert not any(secret in " ".join(member.cmdline()) for secret in SECRETS)
            break
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err[-3000:]
    for secret in SECRETS:
        assert secret not in "".join(seen) + out + err
        assert not files_holding(project, secret)


@pytest.mark.parametrize("name", ["with blank", "dot.name", "umlaut\u00e4", "x" * 60, "../up", "plain_name-1", "a;b", ""])
def test_s19_project_names(m0, data, tmp_path, name):
    """Accepted whole, or refused with the rule; nothing appears anywhere else."""
    place = tmp_path / "place"
    place.mkdir()
    result = train(m0, data, name, cwd=place)
    if result.code == 0:
        assert (place / name / "model.safetensors").exists()
    else:
        assert result.code == 2
        assert "project" in result.output.lower()
        assert not list(place.iterdir())
    if name == "plain_name-1":
        assert result.code == 0 and [p.name for p in place.iterdir()] == [name]
    if name in ("with blank", "x" * 60, "a;b", ""):
        assert result.code == 2


@pytest.mark.parametrize("flag", ["--project-name", "--project_name"])
def test_s19_both_spellings(m0, data, tmp_path, flag):
    run("llm", "--train", "--trainer", "sft", "--model", m0, "--data-path", data, flag, "mine", "--log", "none",
        "--save_strategy", "no", cwd=tmp_path).ok()
    assert (tmp_path / "mine" / "model.safetensors").exists()
    assert json.loads((tmp_path / "mine" / "training_params.json").read_text())["project_name"] == str(tmp_path / "mine")


def test_projects_dir_variable(m0, data, tmp_path):
    train(m0, data, "mine", cwd=tmp_path, env={"AUTOTRAIN_PROJECTS_DIR": tmp_path / "base"}).ok()
    assert (tmp_path / "base" / "mine" / "model.safetensors").exists()


def test_new_tokens_under_full_training_grow_the_model(tmp_path, project):
    """T0 plus ids 261..268 over 264 rows: five new rows, each the mean of the old."""
    added = [{"id": 261 + i, "content": f"<new{i}>"} for i in range(8)]
    model = models.write_m0(tmp_path / "model", added=added)
    data = texts(tmp_path / "data", ["ab<new7>cd"])
    train(model, data, project, lr=0).ok()
    before, after = weights(model), weights(project)
    rows = after["model.embed_tokens.weight"].shape[0]
    assert rows >= 269 and json.loads((project / "config.json").read_text())["vocab_size"] == rows
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        assert after[name].shape[0] == rows
        assert torch.equal(after[name][:264], before[name])
        mean = before[name].double().mean(0)
        assert (after[name][264:].double() - mean).abs().max() < 1e-6
    loads_whole(project)


def test_new_tokens_under_peft_are_refused(tmp_path, project):
    added = [{"id": 261 + i, "content": f"<new{i}>"} for i in range(8)]
    model = models.write_m0(tmp_path / "model", added=added)
    data = texts(tmp_path / "data", ["ab<new7>cd"])
    train(model, data, project, "--peft").refused("268", "264")
