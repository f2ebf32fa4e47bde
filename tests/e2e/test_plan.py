"""`aitraining plan`: what a training would do and need, told before anything runs (S6-S9, S11, S34, S43, S54, S55)."""
import json
import os
import re
import time
from pathlib import Path

import pytest

from fixtures.data import random_texts, sentence, texts
from fixtures.memory import peaks
from fixtures.runner import binary, flags, run, training_command

import random

MIB = 2**20


def plan(model, data, *words, env=None, task="llm", before=(), **options):
    """The plan as JSON."""
    named = {"model": model, "data_path": data, "project_name": "run", "log": "none", **options}
    result = run("plan", *before, task, *flags(named), "--json", *words, env=env)
    assert result.code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def data(tmp_path):
    return texts(tmp_path / "data", random_texts(40))


def launcher(planned):
    return " ".join(planned["accelerate_command"][:planned["accelerate_command"].index("-m", 3)])


def test_s06_s07_ddp_is_the_default_however_it_is_said(m0, data, tmp_path):
    named = plan(m0, data, "--train", "--distributed-backend", "ddp", before=("--assume-devices", "4"))
    assert launcher(named) == "accelerate launch --multi_gpu --num_machines 1 --num_processes 4 --mixed_precision no"
    assert plan(m0, data, "--assume-devices", "4")["accelerate_command"] == named["accelerate_command"]
    common = ("task: llm\nbackend: local\nbase_model: {m}\nproject_name: run\ndata:\n  path: {d}\n  train_split: train\n"
              "  valid_split: null\n  chat_template: null\n  column_mapping:\n    text_column: text\nlog: none\nparams:\n"
              "  epochs: 1\n")
    for name, line in (("null", "  distributed_backend: null\n"), ("absent", "")):
        file = tmp_path / f"{name}.yaml"
        file.write_text(common.format(m=m0, d=data) + line)
        result = run("plan", "--config", file, "--assume-devices", "4", "--json")
        assert result.code == 0, result.output
        assert json.loads(result.stdout)["accelerate_command"] == named["accelerate_command"]


def test_s08_s36_deepspeed_has_every_flag(m0, data):
    planned = plan(m0, data, "--assume-devices", "4", distributed_backend="deepspeed", gradient_accumulation=3)
    assert planned["engine"] == "zero3"
    assert launcher(planned) == (
        "accelerate launch --use_deepspeed --zero_stage 3 --offload_optimizer_device none --offload_param_device none "
        "--zero3_save_16bit_model true --zero3_init_flag true --deepspeed_multinode_launcher standard "
        "--gradient_accumulation_steps 3 --mixed_precision no")


def test_s09_other_backends_are_refused(m0, data):
    result = run("plan", "llm", "--model", m0, "--data-path", data, "--project-name", "run", "--distributed-backend", "fsdp")
    result.refused("Unsupported distributed backend", "fsdp")


@pytest.mark.parametrize("devices, begins", ((0, "--cpu"), (1, "--num_machines 1 --num_processes 1"),
                                             (3, "--multi_gpu --num_machines 1 --num_processes 3")))
def test_s11_one_rank_for_each_device(m0, data, devices, begins):
    planned = plan(m0, data, "--assume-devices", devices)
    assert launcher(planned).split("launch ", 1)[1].startswith(begins)
    assert planned["ranks"] == max(1, devices)


def test_s43_the_configuration_of_zero_in_effect(m0, data):
    zero = plan(m0, data, "--assume-devices", "2", distributed_backend="deepspeed", gradient_accumulation=4)["zero"]
    optimization = zero["zero_optimization"]
    assert optimization["stage"] == 3
    assert optimization["offload_optimizer"] == optimization["offload_param"] == {"device": "none"}
    assert optimization["stage3_gather_16bit_weights_on_model_save"] is True
    assert zero["gradient_accumulation_steps"] == 4 and zero["gradient_clipping"] == 1.0
    assert plan(m0, data, "--assume-devices", "2")["zero"] is None


def test_s38_unused_parameters_are_not_searched_for(m0, data):
    assert plan(m0, data, "--assume-devices", "2")["ddp_find_unused_parameters"] is False


@pytest.mark.parametrize("devices, engine", ((0, "single"), (1, "single"), (2, "ddp"), (3, "zero3"), (8, "zero3")))
@pytest.mark.parametrize("task", ("seq2seq", "vlm"))
def test_s50_other_tasks_choose_by_themselves(m0, data, task, devices, engine):
    planned = plan(m0, data, "--assume-devices", devices, task=task)
    assert planned["engine"] == engine
    assert any(f"task {task}" in text for text in planned["unsupported"])


def test_s54_s55_visible_devices(m0, data):
    listed = plan(m0, data, "--assume-devices", "4", env={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert listed["ranks"] == 2 and "--num_processes 2" in launcher(listed)
    assert plan(m0, data, "--assume-devices", "4")["ranks"] == 4


H200 = "NVIDIA H200|GPU-{0}0000000-0000-0000-0000-00000000000{0}|143771|{1}|9.0|0000:{0}8:00.0"


def fake_driver(gpus, links="", **more):
    """Environment with these libraries in place of NVIDIA's."""
    folder = Path(os.environ.get("AITRAINING_FAKE_NVIDIA", Path(binary()).parent / "fake_nvidia"))
    assert (folder / "nvml" / "libnvidia-ml.so.1").is_file(), f"no test libraries in {folder}: build all targets"
    return {"LD_LIBRARY_PATH": f"{folder}/nvml:{folder}/cuda", "FAKE_GPUS": gpus, "FAKE_LINKS": links, **more}


def test_s34_devices_are_found_without_a_context(m0, data):
    gpus = ";".join(H200.format(i, 143000) for i in (1, 2, 3))
    planned = plan(m0, data, env=fake_driver(gpus, CUDA_VISIBLE_DEVICES="GPU-3,GPU-1"))
    assert planned["device"] == "cuda" and planned["ranks"] == 2
    assert [gpu["pci_bus"] for gpu in planned["gpus"]] == ["0000:38:00.0", "0000:18:00.0"]
    assert planned["gpus"][0]["compute_capability"] == "9.0"
    assert planned["capacity_per_rank"] == 143000 * MIB
    assert [rank["LOCAL_RANK"] for rank in planned["environment"]] == ["0", "1"]


def test_s60_slow_links_are_told(m0, data):
    gpus = ";".join(H200.format(i, 143000) for i in (1, 2))
    planned = plan(m0, data, env=fake_driver(gpus, "X,SYS;SYS,X"))
    assert any(note.startswith("GPUs 0 and 1 are not on the same PCIe root complex") for note in planned["notes"])


def test_driver_without_the_management_library(m0, data):
    env = fake_driver(H200.format(1, 143000))
    env["LD_LIBRARY_PATH"] = env["LD_LIBRARY_PATH"].split(":")[1]
    planned = plan(m0, data, env=env)
    assert planned["ranks"] == 1 and planned["gpus"][0]["name"] == "NVIDIA H200"
    assert planned["capacity_per_rank"] == 143771 * MIB


def test_updates_of_known_and_unknown_rows(m0, data, tmp_path):
    planned = plan(m0, data, batch_size=2, gradient_accumulation=4, epochs=3)
    assert planned["rows"] == 40 and planned["updates"] == 15 and planned["batch"]["rows_per_update"] == 8
    missing = plan(m0, tmp_path / "nowhere", batch_size=2, gradient_accumulation=4)
    assert missing["rows"] is None and missing["updates_per_1000_rows"] == 125
    assert "nowhere" in missing["data_problem"]


def test_what_does_not_fit_names_what_would(smollm2, data):
    planned = plan(smollm2, data, "--assume-devices", "2x2GiB")["model"]
    assert planned["fits"] is False
    changes = [remedy["flags"] for remedy in planned["remedies"]]
    assert "--peft" in changes, planned
    assert all(remedy["total"] <= 2 * 2**30 for remedy in planned["remedies"])
    assert plan(smollm2, data, "--assume-devices", "2x80GiB")["model"]["fits"] is True
    assert plan(smollm2, data, "--assume-devices", "2")["model"]["fits"] is None
    text = run("plan", "llm", "--model", smollm2, "--data-path", data, "--project-name", "run", "--assume-devices", "2x2GiB")
    assert "NO: a rank may use 2.0 GiB" in text.stdout and "--peft" in text.stdout


def test_explain_names_every_origin(m0, data, tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(f"task: llm\nbackend: local\nbase_model: {m0}\nproject_name: run\ndata:\n  path: {data}\n  train_split: train\n"
                    "  valid_split: null\nlog: none\nparams:\n  epochs: 3\n")
    result = run("plan", "--config", file, "--lr", "1e-4", "--json", "--explain", env={"HF_TOKEN": "hf_SECRETWORD"})
    assert result.code == 0, result.output
    found = {p["name"]: p for p in json.loads(result.stdout)["parameters"]}
    assert found["epochs"]["value"] == "3" and re.search(r"run\.yaml:11$", found["epochs"]["origin"])
    assert found["lr"]["origin"] == "flag --lr"
    assert found["batch_size"]["origin"] == "default"
    assert found["token"]["value"] == "***" and "HF_TOKEN" in found["token"]["origin"]
    assert "SECRETWORD" not in result.output
    assert "Parameters" in run("plan", "--config", file, "--explain").stdout


def test_nothing_is_written_and_it_is_quick(smollm2, data, tmp_path):
    times = []
    for _ in range(3):
        begin = time.monotonic()
        result = run("plan", "llm", "--model", smollm2, "--data-path", data, "--project-name", "run", cwd=tmp_path)
        times.append(time.monotonic() - begin)
        assert result.code == 0, result.output
    assert min(times) < 0.5, times
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def peak(model, data, project, **options):
    """Of the largest rank."""
    return peaks(training_command(model, data, project, lr=1e-4, **options), project)[-1]


CONFIGURATIONS = {
    "full": {"block_size": 256},
    "full-two-ranks": {"block_size": 128, "ranks": 2},
    "full-zero3": {"block_size": 128, "ranks": 2, "distributed_backend": "zero3"},
    "full-kept-activations": {"block_size": 256, "disable_gradient_checkpointing": True},
    "lora": {"block_size": 256, "peft": True, "merge_adapter": False, "batch_size": 2},
    "lora-zero3": {"block_size": 256, "peft": True, "merge_adapter": False, "ranks": 2, "distributed_backend": "zero3"},
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_memory_is_within_a_tenth_of_what_is_measured(smollm2, tmp_path, name):
    options = {"batch_size": 1, "gradient_accumulation": 1, "epochs": 1, **CONFIGURATIONS[name]}
    rng = random.Random(1)
    rows = 2 * options["batch_size"] * options.get("ranks", 1)  # two updates: the second has all there is
    data = texts(tmp_path / "data", [sentence(rng, 400) for _ in range(rows)])
    asked = {("nproc_per_node" if k == "ranks" else k): v for k, v in options.items()}
    model = plan(smollm2, data, **asked)["model"]
    expected = model["memory_per_rank"]["total"]
    measured = peak(smollm2, data, tmp_path / "project", **options)
    print(f"{name}: planned {expected / MIB:.0f} MiB, measured {measured / MIB:.0f} MiB")
    assert abs(expected - measured) < 0.1 * measured, (name, model["memory_per_rank"], measured / MIB)


def test_s46_two_machines_have_the_same_command(m0, data):
    one = plan(m0, data, "--assume-devices", "4", distributed_backend="deepspeed")
    two = plan(m0, data, "--assume-devices", "4", distributed_backend="deepspeed", nnodes=2, node_rank=1, master_addr="10.0.0.1")
    assert two["accelerate_command"] == one["accelerate_command"]
    assert (two["ranks"], two["nnodes"], two["ranks_per_node"]) == (8, 2, 4)
    assert two["environment"][0]["RANK"] == "4" and two["environment"][0]["WORLD_SIZE"] == "8"
    assert two["batch"]["rows_per_update"] == 2 * one["batch"]["rows_per_update"]
