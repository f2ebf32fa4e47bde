"""`aitraining env`: what a report of a fault needs (S37, S56, S60)."""
import json
import time

import psutil

from fixtures.data import random_texts, texts
from fixtures.runner import family, finish, run, start, train, training_command
from test_plan import H200, fake_driver


def report(*words, env=None):
    result = run("env", "--json", *words, env=env)
    assert result.code == 0, result.output
    return json.loads(result.stdout)


def test_s56_env_prints_the_fields():
    times = []
    for _ in range(3):
        begin = time.monotonic()
        result = run("env")
        times.append(time.monotonic() - begin)
        assert result.code == 0, result.output
    for label in ("`aitraining` version", "Platform", "LibTorch version", "CUDA, cuDNN, NCCL", "System RAM", "/dev/shm", "Driver",
                  "Engines: ddp, zero2, zero3", "Limits", "Processor"):
        assert label in result.stdout, label
    assert len(result.stdout.splitlines()) <= 50
    assert min(times) < 2, times
    assert run("accelerate", "env").stdout.splitlines()[:4] == result.stdout.splitlines()[:4]


def test_versions_come_from_files():
    libraries = report()["libraries"]
    assert libraries["libtorch"].startswith("2.11")
    for name in ("cuda", "cudnn", "nccl"):
        assert libraries[name].split(".")[0].isdigit(), libraries


def test_without_libtorch_it_says_so(tmp_path):
    found = report(env={"AITRAINING_LIBTORCH": tmp_path})
    assert "LibTorch 2.11 was not found" in found["libraries"]["problem"]


def test_secrets_are_masked():
    secrets = {"HF_TOKEN": "hf_SECRETWORD", "WANDB_API_KEY": "SECRETWORD", "AITRAINING_PASSWORD": "SECRETWORD"}
    result = run("env", env={**secrets, "NCCL_DEBUG": "INFO"})
    assert "HF_TOKEN=***" in result.stdout and "NCCL_DEBUG=INFO" in result.stdout
    assert "SECRETWORD" not in result.output
    variables = report(env={**secrets, "NCCL_DEBUG": "INFO"})["variables"]
    assert variables["WANDB_API_KEY"] == "***" and variables["NCCL_DEBUG"] == "INFO"


def test_s60_topology_and_warning():
    gpus = ";".join(H200.format(i, 143000) for i in (1, 2, 3))
    env = fake_driver(gpus, "X,NV18,SYS;NV18,X,SYS;SYS,SYS,X")
    found = report(env=env)
    assert found["topology"] == [["X", "NV18", "SYS"], ["NV18", "X", "SYS"], ["SYS", "SYS", "X"]]
    assert found["driver"] == "580.95.05" and found["driver_cuda"] == "13.0"
    assert found["warnings"] == ["GPUs 0 and 2 are not on the same PCIe root complex and have no NVLink; expect slow gradient "
                                 "sync. Choose others with CUDA_VISIBLE_DEVICES."]
    text = run("env", env=env).stdout
    assert "GPU0   X    NV18 SYS" in text and "Warning: GPUs 0 and 2" in text
    assert "GPU 2: NVIDIA H200" in text


def test_accelerates_own_configuration_is_shown(tmp_path):
    assert report(env={"HF_HOME": tmp_path})["accelerate_config"] is None
    file = tmp_path / "accelerate" / "default_config.yaml"
    file.parent.mkdir()
    file.write_text("# made by hand\nnum_machines: 2\nmachine_rank: 1\n")
    assert report(env={"HF_HOME": tmp_path})["accelerate_config"]["lines"] == ["num_machines: 2", "machine_rank: 1"]
    assert "\tnum_machines: 2" in run("env", "--config_file", file).stdout
    run("env", "--config_file", tmp_path / "other.yaml").refused("there is no file", "other.yaml")


def test_s37_every_run_begins_its_log_with_it(m0, tmp_path):
    data = texts(tmp_path / "data", random_texts(8))
    result = train(m0, data, tmp_path / "project", env={"HF_TOKEN": "hf_SECRETWORD"}).ok()
    log = (result.project / "autotrain.log").read_text()
    lines = log.splitlines()
    begin = next(i for i, line in enumerate(lines) if "accelerate env" in line)
    assert begin == 0
    end = next(i for i, line in enumerate(lines) if "`Accelerate` default config" in line)
    assert end - begin <= 50
    assert any("System RAM" in line for line in lines[begin:end])
    assert "SECRETWORD" not in log


def test_s35_ranks_have_accelerates_variables(m0, tmp_path):
    data = texts(tmp_path / "data", random_texts(8))
    command = training_command(m0, data, tmp_path / "project", distributed_backend="zero3", ranks=2)
    process = start(command, env={"NCCL_TIMEOUT": "17"})
    seen = {}
    while process.poll() is None:
        for member in family(process)[1:]:
            try:
                variables = member.environ()
            except psutil.Error:
                continue
            # Between fork and exec a child still has its parent's variables.
            if "RANK" in variables:
                seen[variables["RANK"]] = variables
    finish(process, 60, tmp_path / "project", command).ok()
    assert sorted(seen) == ["0", "1"]
    for rank, variables in seen.items():
        assert variables["LOCAL_RANK"] == rank
        for name, value in (("WORLD_SIZE", "2"), ("LOCAL_WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1"),
                            ("ACCELERATE_MIXED_PRECISION", "no"), ("ACCELERATE_USE_DEEPSPEED", "true"),
                            ("ACCELERATE_DEEPSPEED_ZERO_STAGE", "3"), ("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "7200"),
                            ("NCCL_TIMEOUT", "17")):
            assert variables[name] == value, (rank, name, variables.get(name))
        assert int(variables["MASTER_PORT"]) > 0
