"""Training from programs: the C++ example and the Python package (S14, S21, E3, secrets)."""
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from fixtures.data import texts
from fixtures.reading import files_holding
from fixtures.runner import ROOT, Result, binary, environment, gone, run

TWO = {"AUTOTRAIN_FORCE_NUM_PROCESSES": "2"}
SECRETS = {"token": "hf_" + "FAKE" * 8 + "01", "wandb_token": "FAKEwandb0123456789"}


@pytest.fixture
def data(tmp_path):
    return texts(tmp_path / "data", [f"row {n} of forty, with a few words in it" for n in range(40)])


def example(*words, env=None):
    program = Path(binary()).with_name("example_finetune")
    command = [str(program), *map(str, words)]
    done = subprocess.run(command, env=environment({"AITRAINING_BIN": binary(), **(env or {})}), capture_output=True,
                          text=True, timeout=120)
    return Result(done.returncode, done.stdout, done.stderr, Path(words[-1]), command)


def python_process(code, env=None, **popen):
    env = environment({"AITRAINING_BIN": binary(), "PYTHONPATH": ROOT / "python", **(env or {})})
    return subprocess.Popen([sys.executable, "-c", f"from aitraining import *\n{code}"], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)


def python(code, env=None, project=None):
    process = python_process(code, env)
    out, err = process.communicate(timeout=120)
    return Result(process.returncode, out, err, project, [code])


def params(m0, data, project, **more):
    values = {"model": str(m0), "data_path": str(data), "project_name": str(project), "trainer": "sft", "log": "none",
              "save_strategy": "no", **more}
    return f"params = LLMTrainingParams(**{values!r})\n"


def test_s14_example_program(m0, data, project):
    result = example(m0, data, project, env=TWO).ok()
    assert re.search(r"^Job ID: \d+$", result.stdout, re.MULTILINE)
    assert result.stdout.index("'train_loss'") < result.stdout.index("Job ID")  # after the training
    assert result.state["global_step"] == 9 and "engine zero3" in result.output
    assert (result.params["lora_r"], result.params["mixed_precision"]) == (16, "bf16")
    assert (project / "model.safetensors").exists() and (project / "adapter" / "adapter_model.safetensors").exists()


def test_s14_example_and_command_line_give_the_same_run(m0, data, tmp_path):
    by_program = example(m0, data, tmp_path / "program", env=TWO).ok()
    flags = ["--trainer", "sft", "--distributed-backend", "deepspeed", "--epochs", 3, "--batch-size", 2,
             "--gradient-accumulation", 4, "--mixed-precision", "bf16", "--peft", "--lora-r", 16]
    by_flags = run("llm", "--train", "--model", m0, "--data-path", data, "--project-name", tmp_path / "flags", *flags,
                   env=TWO, project=tmp_path / "flags").ok()
    different = {name for name in by_flags.params if by_flags.params[name] != by_program.params[name]}
    assert different == {"project_name"} and by_flags.losses == by_program.losses


@pytest.mark.parametrize("model,data_path,project_name,said", [
    ("nothing", None, "fine", "model"), (None, "nothing", "fine", "train.csv"), (None, None, "a b", "holds a blank")])
def test_example_program_is_refused_like_the_command_line(m0, data, tmp_path, model, data_path, project_name, said):
    result = example(model or m0, data_path or data, tmp_path / project_name).refused(said)
    assert not (tmp_path / project_name).exists() and "Job ID" not in result.stdout


def test_s21_create_returns_the_job_after_the_training(m0, data, project):
    code = params(m0, data, project) + "print('job', AutoTrainProject(params=params, backend='local', process=True).create())"
    result = python(code, project=project).ok()
    assert re.search(r"^job \d+$", result.stdout, re.MULTILINE)
    assert (project / "model.safetensors").exists() and result.state["global_step"] == 5


def test_e3_other_backends(m0, data, project):
    result = python(params(m0, data, project) + "AutoTrainProject(params=params, backend='spaces-a10g', process=True)")
    assert "ValueError: Invalid backend: spaces-a10g" in result.stderr and not project.exists()


def test_every_problem_is_in_the_exception(m0, data, project):
    code = params(m0, data, project, lr="fast", batch_size=0, mixed_precision="fp17") + """
try:
    AutoTrainProject(params=params, backend="local", process=True).create()
except ValueError as error:
    print("refused:", error)
"""
    result = python(code).ok()
    said = result.stdout[result.stdout.index("refused:"):]
    for word in ("3 problems", "lr: 'fast' is not a number", "batch_size: 0 is out of range", "mixed_precision", "fp17"):
        assert word in said, said
    assert not project.exists()


@pytest.mark.parametrize("code,said", [
    ("LLMTrainingParams(epoch=3)", "unknown parameter 'epoch': did you mean 'epochs'?"),
    ("LLMTrainingParams(learning_rate=1)", "unknown parameter 'learning_rate': did you mean 'lr'?"),
    ("LLMTrainingParams().bacth_size = 3", "unknown parameter 'bacth_size': did you mean 'batch_size'?"),
])
def test_unknown_names(code, said):
    assert said in python(code).stderr


def test_values_as_python_writes_them(m0, data, project):
    more = {"lr": 1, "peft": True, "lora_r": 4, "target_modules": ["q_proj", "v_proj"], "mixed_precision": None,
            "distributed_backend": None, "merge_adapter": False, "warmup_ratio": 0}
    code = params(m0, data, project, **more) + "AutoTrainProject(params=params).create()"
    found = python(code, project=project).ok().params
    assert (found["lr"], found["target_modules"], found["lora_r"]) == (1.0, "q_proj,v_proj", 4)
    assert found["mixed_precision"] is None and found["merge_adapter"] is False


def test_failure_in_work(m0, data, project):
    code = params(m0, data, project, lr=1e30, optimizer="sgd", max_grad_norm=0, warmup_ratio=0, epochs=3, batch_size=1,
                  gradient_accumulation=1) + """
try:
    AutoTrainProject(params=params).create()
except TrainingFailed as error:
    print("failed:", error.code, error)
"""
    result = python(code).ok()
    assert "failed: 1 Training failed with exit code: 1" in result.stdout
    assert re.search(r"failed:(.|\n)*finite", result.stdout)


def test_br32_secrets_go_by_the_environment(m0, data, project):
    code = params(m0, data, project, epochs=1000000, nproc_per_node=2, **SECRETS) + \
        "print(params)\nAutoTrainProject(params=params).create()"
    process = python_process(code)
    seen = []
    try:
        for line in process.stdout:
            seen.append(line)
            if "'loss'" in line:
                break
        members = psutil.Process(process.pid).children(recursive=True)
        assert len(members) == 3  # the job and its ranks
        for member in members:
            assert not any(secret in " ".join(member.cmdline()) for secret in SECRETS.values())
        variables = members[0].environ()
        assert (variables["HF_TOKEN"], variables["WANDB_API_KEY"]) == (SECRETS["token"], SECRETS["wandb_token"])
    finally:
        process.send_signal(signal.SIGKILL)  # takes the whole training with it
        out, err = process.communicate(timeout=30)
    assert gone(members)
    for secret in SECRETS.values():
        assert secret not in "".join(seen) + out + err
        assert not files_holding(project, secret)


def test_ctrl_c_ends_the_training(m0, data, project):
    code = params(m0, data, project, epochs=1000000, nproc_per_node=2) + "AutoTrainProject(params=params).create()"
    process = python_process(code, start_new_session=True)
    for line in process.stdout:
        if "'loss'" in line:
            break
    members = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT and "KeyboardInterrupt" in err
    assert err.count("[INTERRUPTED]") == 1 and gone(members)


def test_package_is_made_from_the_table():
    """Drift: python/aitraining/params.py is what scripts/python_params.py makes of this executable's schema."""
    schema = run("schema").stdout
    made = subprocess.run([sys.executable, ROOT / "scripts" / "python_params.py"], input=schema, capture_output=True,
                          text=True, check=True).stdout
    assert (ROOT / "python" / "aitraining" / "params.py").read_text(encoding="utf-8") == made
    names = set(json.loads(schema)["properties"]["params"]["properties"])
    listed = python("import dataclasses; print(*[f.name for f in dataclasses.fields(LLMTrainingParams)])").ok().stdout
    assert set(listed.split()) == names and len(names) > 150


def test_package_needs_the_standard_library_only():
    imports = set()
    for file in (ROOT / "python").rglob("*.py"):
        imports |= set(re.findall(r"^(?:from|import) (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))
    assert imports - {"aitraining", "__future__"} <= set(sys.stdlib_module_names)


def test_missing_executable_says_where_it_was_looked_for():
    result = python("executable()", env={"AITRAINING_BIN": "/nowhere/aitraining"})
    assert "AITRAINING_BIN=/nowhere/aitraining is no executable file" in result.stderr
