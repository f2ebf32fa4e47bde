"""Every parameter by flag and file: W4, what is not in this build, several files, URLs, secrets, tasks, generated texts."""
import functools
import http.server
import json
import os
import resource
import shutil
import subprocess
import threading

import pytest

from fixtures import models
from fixtures.config_files import YAML
from fixtures.data import chats
from fixtures.runner import binary, environment, run, train

SECRET = "hf_FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE01"


@pytest.fixture
def data(tmp_path):
    return chats(tmp_path / "data", [models.SAMPLE_A])


@pytest.fixture
def whole(m0, data, project):
    """A configuration that trains; lines put behind it stand under params."""
    return YAML.format(model=m0, project=project, data=data)


def write(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def test_br38_parameter_of_another_trainer_is_noted(m0, data, project, tmp_path, whole):
    said = "Parameter 'rl_gamma=0.9' is only used with trainer=ppo, but trainer=sft. This parameter will be ignored."
    assert said in train(m0, data, project, "--rl-gamma", "0.9").ok().output
    file = write(tmp_path, "run.yaml", whole + "  rl_gamma: 0.9\n")
    assert said in run("--config", file, project=project).ok().output


@pytest.mark.parametrize("words", [("--use-sweep",), ("--auto-find-batch-size",), ("--use-enhanced-eval",),
                                   ("--custom-loss", "kl"), ("--auto-convert-dataset",), ("--sample-every-n-steps", "5"),
                                   ("--inference-prompts", "x"), ("--token-weights", "{}"), ("--push-to-hub",)])
def test_what_is_not_in_this_build_is_refused_before_work(m0, data, project, words):
    result = train(m0, data, project, *words).refused("not supported yet in this build", words[0], words[0][2:].replace("-", "_"))
    assert not project.exists() and len(result.output.splitlines()) < 10


def test_defaults_given_in_full_are_accepted(m0, data, project):
    train(m0, data, project, "--conversation-extension", "1", "--save-processed-data", "auto", "--use-sweep=false",
          "--sweep-backend", "optuna", "--eval-batch-size", "8", "--inference-max-tokens", "256").ok()


def test_python_hooks_say_what_to_use_instead(m0, data, project):
    train(m0, data, project, "--unsloth").refused("not supported", "unsloth", "kernels of its own")


@pytest.mark.parametrize("task", ["seq2seq", "vlm", "vlm:captioning"])
def test_tasks_that_are_not_there_come_after_all_other_problems(m0, data, project, tmp_path, whole, task):
    by_flag = run(task, "--train", "--model", m0, "--data-path", data, "--project-name", project, "--lr", "fast",
                  project=project).refused("--lr: 'fast'", f"not supported yet in this build: task {task[:3]}")
    assert by_flag.output.index("fast") < by_flag.output.index("not supported yet")
    text = whole.replace("llm-sft", task).replace("  save_strategy: 'no'\n", "  lr: fast\n").replace("  chat_template: tokenizer\n", "")
    by_file = run("--config", write(tmp_path, "run.yaml", text), project=project)
    by_file.refused("run.yaml:14:7: params.lr: 'fast'", "run.yaml:1:7: not supported yet in this build: task")


@pytest.mark.parametrize("word", ["llm-sft", "llm:sft"])
def test_the_trainer_in_the_command_word(m0, data, project, word):
    result = run(word, "--train", "--model", m0, "--data-path", data, "--project-name", project, "--log", "none",
                 "--text-column", "messages", project=project).ok()
    assert result.params["trainer"] == "sft"


def test_several_files_left_to_right_and_flags_over_all(tmp_path, project, whole):
    first = write(tmp_path, "a.yaml", whole + "  lr: 1e-3\n  seed: 1\n  batch_size: 1\n")
    second = write(tmp_path, "b.yaml", "params:\n  lr: 1e-4\n  seed: 2\n")
    result = run("--config", first, "--config", second, "--seed", "3", project=project).ok()
    assert (result.params["batch_size"], result.params["lr"], result.params["seed"]) == (1, 1e-4, 3)
    for said in ("b.yaml:2", "a.yaml:18", "(flag)"):
        assert said in result.output


@pytest.fixture
def server(tmp_path):
    """Serves a folder on the loopback interface."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


@pytest.mark.skipif(shutil.which("curl") is None, reason="the program curl fetches URLs")
def test_configuration_behind_a_url(server, project, whole):
    folder, url = server
    write(folder, "run.yaml", whole + "  lr: 1e-3\n")
    here = {"no_proxy": "127.0.0.1"}
    result = run("--config", f"{url}/run.yaml", env=here, project=project).ok()
    assert result.params["lr"] == 1e-3 and f"{url}/run.yaml:16" in result.output
    write(folder, "run.yaml", whole + "  lr: fast\n")
    run("--config", f"{url}/run.yaml", env=here).refused(f"{url}/run.yaml:16:7: params.lr: 'fast'")
    run("--config", f"{url}/none.yaml", env=here).refused("Failed to retrieve YAML file.", "404")


@pytest.mark.parametrize("end", ["good", "bad"])
def test_br32_secrets_in_a_file(tmp_path, project, whole, end):
    extra = f"  token: {SECRET}\n  wandb_token: ${{KEY_OF_MINE}}\n" + ("" if end == "good" else "  lr: fast\n")
    file = write(tmp_path, "run.yaml", whole + extra)
    result = run("--config", file, env={"KEY_OF_MINE": SECRET}, project=project)
    assert result.code == (0 if end == "good" else 2)
    assert SECRET not in result.output
    assert end == "bad" or "token = ***" in result.output
    for path in project.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def test_br32_an_environment_secret_goes_nowhere_else(tmp_path, project, whole):
    file = write(tmp_path, "run.yaml", whole.replace("column: messages", "column: ${HF_TOKEN}"))
    result = run("--config", file, env={"HF_TOKEN": SECRET}, project=project).refused("HF_TOKEN holds a secret")
    assert SECRET not in result.output


@pytest.mark.parametrize("kind", ["int4", "int8"])
def test_br15_quantization_in_a_file(tmp_path, project, whole, kind):
    with_peft = write(tmp_path, "run.yaml", whole + f"  quantization: {kind}\n  peft: true\n")
    run("--config", with_peft, project=project).refused("run.yaml:16:17", "quantization", "--mixed-precision bf16")
    without = write(tmp_path, "run.yaml", whole + f"  quantization: {kind}\n")
    run("--config", without, project=project).refused("without peft", "--peft")


def test_saved_parameters_are_all_of_them(m0, data, project):
    params = train(m0, data, project).ok().params
    assert len(params) > 150 and params["rl_gamma"] == 0.99 and params["sweep_backend"] == "optuna"
    assert "token" not in params and "wandb_token" not in params


def test_schema_covers_the_file_that_trains(whole):
    schema = json.loads(run("schema").stdout)
    assert set(schema["required"]) == {"task", "backend"}
    for line in whole.splitlines():
        assert f'"{line.split(":")[0].strip()}"' in json.dumps(schema)
    assert "target_column" in run("schema", "--task", "seq2seq").stdout
    run("schema", "--task", "lmm").refused("did you mean 'llm'")


def test_completion_in_bash():
    script = run("completion", "bash").stdout
    ask = 'COMP_WORDS=(aitraining llm --gradient-ac); COMP_CWORD=2; _aitraining; echo "${COMPREPLY[@]}"'
    proposed = subprocess.run(["bash", "--norc", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    assert proposed.stdout.split() == ["--gradient-accumulation", "--gradient-accumulation-steps"]
    for shell in ("zsh", "fish"):
        assert "lora-dropout" in run("completion", shell).stdout


@pytest.mark.parametrize("trainer,there,absent", [("sft", "--response-only-loss", "--dpo-beta"),
                                                  ("dpo", "--dpo-beta", "--response-only-loss"),
                                                  ("ppo", "--rl-gamma", "--rl-num-generations")])
def test_help_of_a_trainer(trainer, there, absent):
    text = run("llm", "--help-trainer", trainer).stdout
    assert there in text and absent not in text and "--lr NUMBER" in text


def test_help_takes_less_than_twenty_milliseconds():
    def seconds():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([binary(), "--help"], stdout=subprocess.DEVNULL, env=environment(), check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    assert min(seconds() for _ in range(10)) < 0.020, os.getloadavg()
