"""The documents' own commands, with a small model in the place of the one they name."""
import json
import re

import pytest

from fixtures import models
from fixtures.data import exchange, texts, write_jsonl
from fixtures.runner import run

SENTENCES = [f"row {n} of forty, with a few words in it" for n in range(40)]
# The documents' block; `MODEL` stands for meta-llama/Llama-3.2-3B.
SEED_YAML = """\
task: llm-sft
backend: local
base_model: MODEL
project_name: distributed-model

data:
  path: ./data
  train_split: train
  valid_split: null
  chat_template: tokenizer
  column_mapping:
    text_column: text

log: wandb

params:
  distributed_backend: BACKEND  # or null for DDP
  epochs: 3
  batch_size: 2
  gradient_accumulation: 4
  mixed_precision: bf16
  peft: true
  lora_r: 16
"""


@pytest.fixture
def place(tmp_path):
    """A folder with ./data/train.jsonl of 40 rows."""
    texts(tmp_path / "data", SENTENCES)
    return tmp_path


def command(model, *more):
    return ["llm", "--train", "--model", model, "--data-path", "./data", "--project-name", "my-model", "--trainer", "sft",
            "--peft", *more]


def check_folder(project, updates):
    for name in ("model.safetensors", "config.json", "tokenizer.json", "training_params.json", "trainer_state.json",
                 "README.md", "adapter/adapter_model.safetensors", "adapter/adapter_config.json"):
        assert (project / name).stat().st_size > 0, name
    assert [p.name for p in project.glob("checkpoint-*")] == [f"checkpoint-{updates}"]


def test_s10_six_flags(m0, place):
    result = run(*command(m0), cwd=place, project=place / "my-model").ok()
    check_folder(result.project, 5)  # 40 rows, batch 2, accumulation 4
    assert result.state["global_step"] == 5
    assert result.params["project_name"] == str(place / "my-model")
    config = json.loads((result.project / "adapter" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (16, 32)


@pytest.mark.parametrize("ranks", [2, 4])
def test_s1_several_processes_from_one_command(m0, place, ranks):
    result = run(*command(m0), cwd=place, project=place / "my-model", env={"AUTOTRAIN_FORCE_NUM_PROCESSES": ranks}).ok()
    log = (result.project / "autotrain.log").read_text() + result.output
    for rank in range(ranks):
        assert f"rank={rank} world={ranks}" in log
    check_folder(result.project, -(-5 // ranks))


def test_s3_no_python_needed(m0, place):
    run(*command(m0), cwd=place, project=place / "my-model", env={"PATH": "/nowhere"}).ok()


def test_s5_no_gpu_is_said(m0, place):
    result = run(*command(m0, "--device", "auto"), cwd=place, project=place / "my-model",
                 env={"CUDA_VISIBLE_DEVICES": ""}).ok()
    assert "No GPU found. Forcing training on CPU." in result.output


def config(place, model, backend="null", edit=lambda text: text):
    file = place / "seed.yaml"
    file.write_text(edit(SEED_YAML.replace("MODEL", str(model)).replace("BACKEND", backend)))
    return run("--config", file, cwd=place, project=place / "distributed-model")


@pytest.mark.parametrize("backend", ["null", "ddp"])
def test_s22_yaml(m0, place, backend):
    result = config(place, m0, backend).ok()
    check_folder(result.project, 15)  # 5 updates an epoch, 3 epochs
    assert result.state["epoch"] == pytest.approx(3.0)
    params = result.params
    assert params["model"] == str(m0) and params["trainer"] == "sft" and params["valid_split"] is None
    assert (params["epochs"], params["batch_size"], params["gradient_accumulation"]) == (3, 2, 4)
    assert (params["mixed_precision"], params["peft"], params["lora_r"]) == ("bf16", True, 16)
    assert params["chat_template"] == "tokenizer" and params["text_column"] == "text"
    assert params["distributed_backend"] == (None if backend == "null" else backend)
    assert not result.evals and "eval_" not in json.dumps(result.history)  # S28
    assert re.search(r"bf16|bfloat16", result.output)  # S19


def test_s33_yaml_and_flags_differ_in_nothing_else(m0, place):
    by_file = config(place, m0).ok().params
    flags = command(m0, "--epochs", 3, "--batch-size", 2, "--gradient-accumulation", 4, "--mixed-precision", "bf16",
                    "--lora-r", 16)
    by_flags = run(*flags, cwd=place, project=place / "my-model").ok().params
    different = {key for key in by_file.keys() | by_flags.keys() if by_file.get(key) != by_flags.get(key)}
    assert different == {"chat_template", "project_name"} or different == {"chat_template", "project_name", "data_path"}


def test_s7_the_key_left_out_means_null(m0, place):
    with_null = config(place, m0).ok().losses
    without = config(place, m0, edit=lambda text: re.sub(r"  distributed_backend.*\n", "", text)).ok().losses
    assert with_null == without


def test_s2_deepspeed_is_off_unless_asked(m0, place):
    assert "zero3" in config(place, m0, "deepspeed").ok().output
    assert "zero3" not in config(place, m0).ok().output


@pytest.mark.parametrize("key,said", [("task", "Task is required"), ("backend", "Backend is required")])
def test_s23_required_keys(m0, place, key, said):
    config(place, m0, edit=lambda text: re.sub(rf"(?m)^{key}:.*\n", "", text)).refused(said)


def test_s26_relative_data_path(m0, place, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    file = elsewhere / "seed.yaml"
    file.write_text(SEED_YAML.replace("MODEL", str(m0)).replace("BACKEND", "null"))
    run("--config", file, cwd=elsewhere, project=elsewhere / "distributed-model").refused(str(elsewhere / "data"))
    run("--config", file, cwd=place, project=place / "distributed-model").ok()


def test_s29_messages_render_as_the_tokenizer_does(m0, place):
    messages = exchange("hi", "yo")
    write_jsonl(place / "data", [{"text": messages}] * 40)
    result = config(place, m0, edit=lambda text: text + "  logging_steps: 1\n").ok()
    assert sum(result.column("num_trained_tokens")) == 3 * 40 * 3
    assert result.steps[-1]["num_input_tokens_seen"] == 3 * 40 * 25


def test_s30_column_mapping(m0, place):
    write_jsonl(place / "data", [{"body": text} for text in SENTENCES])
    config(place, m0).refused("text", "body")
    config(place, m0, edit=lambda text: text.replace("text_column: text", "text_column: body")).ok()


def test_s31_log_wandb_without_key_or_network_finishes(m0, place):
    result = config(place, m0).ok()
    assert "wandb" in result.output.lower() or (result.project / "wandb").exists()


def test_tied_model_and_chat_rows(m0t, place):
    write_jsonl(place / "data", [{"messages": exchange(f"question {n}", f"answer {n}")} for n in range(40)])
    result = run(*command(m0t), cwd=place, project=place / "my-model").ok()
    check_folder(result.project, 5)
    assert models.VOCAB == json.loads((result.project / "config.json").read_text())["vocab_size"]
