"""Cases from public reports with exact outcomes: BR-03, BR-15, BR-32, BR-38, S-16, S-19, S-21."""
import json
import os
import re
import socket
import time

import pytest

from fixtures import models
from fixtures.data import chats
from fixtures.reading import files_holding
from fixtures.runner import family, gone, kill_tree, run, start, train, training_command

TOKEN, KEY = "hf_" + "FAKE" * 8 + "01", "FAKEwandb0123456789"
YAML = """\
task: llm-sft
backend: local
base_model: {model}
project_name: {project}
data:
  path: {data}
  column_mapping:
    text_column: messages
log: none
params:
  save_strategy: 'no'
"""


@pytest.fixture
def data(tmp_path):
    return chats(tmp_path / "data", [models.SAMPLE_A] * 4)


@pytest.fixture
def file(tmp_path, m0, data, project):
    """Writes a configuration: `more` stands under params, from line 12 on."""
    def write(more="", edit=lambda text: text):
        path = tmp_path / "run.yaml"
        path.write_text(edit(YAML.format(model=m0, data=data, project=project) + more))
        return path
    return write


def test_br03_a_busy_port_that_was_asked_for(m0, data, project):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        begin = time.monotonic()
        result = train(m0, data, project, ranks=2, env={"MASTER_PORT": port})
        assert time.monotonic() - begin < 5
    assert result.code != 0 and str(port) in result.output and "MASTER_PORT" in result.output
    assert not (project / "model.safetensors").exists()


def test_br03_a_free_port_that_was_asked_for(m0, data, project):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    assert train(m0, data, project, ranks=2, env={"MASTER_PORT": port}).ok().steps


@pytest.mark.parametrize("kind", ["int4", "int8"])
def test_br15_quantization(m0, data, project, kind):
    """What was asked, what is done on every device instead, what to change; nothing is started."""
    with_peft = train(m0, data, project, "--peft", quantization=kind, device="cpu")
    with_peft.refused(f"quantization {kind}", "CPU", "Remove --quantization", "--mixed-precision bf16")
    without = train(m0, data, project, quantization=kind, device="cpu")
    without.refused(f"quantization {kind} without peft", "--peft")
    assert not project.exists() and "rank=" not in with_peft.output + without.output


def test_br15_fp16_on_a_cpu(m0, data, project):
    result = train(m0, data, project, mixed_precision="fp16", device="cpu").refused("fp16", "CPU", "--mixed-precision bf16")
    assert not project.exists() and "rank=" not in result.output


def test_br15_bf16_on_a_cpu_works(m0, data, project):
    result = train(m0, data, project, mixed_precision="bf16", device="cpu").ok()
    assert "precision bf16 (as asked" in result.output and len(result.steps) == 1


def holds_no_secret(project, text):
    for secret in (TOKEN, KEY):
        assert secret not in text
        assert not files_holding(project, secret)


@pytest.mark.parametrize("by", ["flags", "file", "environment"])
@pytest.mark.parametrize("end", ["work", "killed", "refused"])
def test_br32_secrets_are_nowhere(m0, data, project, file, by, end):
    """By every way in; a failure in work, kill -9 in the middle, an error before work."""
    more = {"work": {"lr": 1e30, "optimizer": "sgd", "max_grad_norm": 0, "warmup_ratio": 0, "epochs": 3},
            "killed": {"epochs": 1000000}, "refused": {"lr": "fast"}}[end]
    more = {**more, "batch_size": 1, "gradient_accumulation": 1}
    env = {"HF_TOKEN": TOKEN, "WANDB_API_KEY": KEY} if by == "environment" else {}
    if by == "file":
        lines = {**more, "token": TOKEN, "wandb_token": KEY, "nproc_per_node": 2, "logging_steps": 1}
        command = ["--config", file("".join(f"  {name}: {value}\n" for name, value in lines.items()))]
    else:
        words = ("--token", TOKEN, "--wandb-token", KEY) if by == "flags" else ()
        command = training_command(m0, data, project, *words, ranks=2, **more)
    process = start(command, env=env)
    said, ranks = [], []
    try:
        if end == "killed":
            for line in process.stdout:
                said.append(line)
                if "'loss'" in line:
                    break
            launcher, *ranks = family(process)
            assert len(ranks) == 2
            for member in (launcher, *ranks):
                line = " ".join(member.cmdline())
                assert TOKEN not in line and KEY not in line
            kill_tree(process)
        out, err = process.communicate(timeout=60)
    finally:
        kill_tree(process)
    assert process.returncode == {"work": 1, "killed": -9, "refused": 2}[end], err[-2000:]
    assert gone(ranks)
    holds_no_secret(project, "".join(said) + out + err)
    if end != "refused" and by != "environment":
        assert "token = ***" in err and "wandb_token = ***" in err


@pytest.mark.parametrize("edit,said", [
    (lambda text: text + "  learnign_rate: 1e-3\n", ("run.yaml:12:3", "'learnign_rate'", "did you mean 'lr'")),
    (lambda text: text + "  batch-size: 4\n", ("run.yaml:12:3", "'batch-size'", "batch_size")),
    (lambda text: "lr: 1e-3\n" + text, ("run.yaml:1:1", "'lr'", "params")),
    (lambda text: text + "  lr: 1e-3\n  seed: 1\n  lr: 2e-3\n", ("run.yaml:14:3", "12", "lr")),
    (lambda text: text + "  epochs: [1, 2]\n", ("run.yaml:12", "epochs", "whole number")),
    (lambda text: text.replace("  save_strategy", "\tsave_strategy"), ("run.yaml:11:", "tab")),
    (lambda text: "- task\n- backend\n", ("run.yaml:1:1",)),
    (lambda text: text + "  lr: {\n", ("run.yaml:1",)),
], ids=["misspelled", "hyphen", "section", "doubled", "list", "tab", "file is a list", "unclosed"])
def test_br38_files(file, project, edit, said):
    run("--config", file(edit=edit), project=project).refused(*said)
    assert not project.exists()


@pytest.mark.parametrize("words,said", [
    (("--learning-rat", "1e-3"), ("unrecognized arguments: --learning-rat", "did you mean --lr?")),
    (("--batch-size", "2", "--batch-size", "4"), ("--batch-size", "2 times")),
    (("--batch-size",), ("--batch-size", "needs a value")),
])
def test_br38_flags(m0, data, project, words, said):
    run(*training_command(m0, data, project), *words, project=project).refused(*said)
    assert not project.exists()


def test_s16_more_ranks_than_cores_is_a_warning(m0, data, project):
    cores = len(os.sched_getaffinity(0))
    result = train(m0, data, project, ranks=cores + 1, device="cpu").ok()
    said = re.search(r"(\d+) ranks on (\d+) core\(s\)", result.output)
    assert int(said[1]) == cores + 1 and int(said[2]) <= cores
    assert f"rank={cores} world={cores + 1}" in result.output


@pytest.mark.parametrize("name,rule", [("with blank", "holds a blank"), ("umlaut\u00e4", "holds '\u00e4'"),
                                       ("x" * 60, "more than 50 characters"), ("~/mine", "begins with ~"), ("", "Project name")])
def test_s19_refused_names_say_the_rule(m0, data, tmp_path, name, rule):
    place = tmp_path / "place"
    place.mkdir()
    train(m0, data, name, cwd=place, save_strategy="no").refused(rule)
    assert not list(place.iterdir())


@pytest.mark.parametrize("name,folder", [("dot.name", "place/dot.name"), ("../up", "up"), ("sub/deep-1", "place/sub/deep-1"),
                                         ("x" * 50, "place/" + "x" * 50)])
def test_s19_accepted_names_are_taken_whole(m0, data, tmp_path, name, folder):
    (tmp_path / "place").mkdir()
    train(m0, data, name, cwd=tmp_path / "place").ok()
    saved = json.loads((tmp_path / folder / "training_params.json").read_text())
    assert saved["project_name"] == str(tmp_path / folder) and (tmp_path / folder / "model.safetensors").exists()
    assert {path.name for path in tmp_path.iterdir()} <= {"place", "data", "up"}


def test_s19_an_absolute_name_with_a_blank_above_it(m0, data, tmp_path):
    train(m0, data, tmp_path / "a folder" / "mine").ok()
    assert (tmp_path / "a folder" / "mine" / "model.safetensors").exists()


def test_s21_wandb_without_key_or_terminal(m0, data, project):
    """No question, no crash: a note, and the numbers of updates 1..N once each in the local log."""
    result = train(m0, data, project, log="wandb", batch_size=1, gradient_accumulation=1).ok()
    assert "metrics go to trainer_state.json" in result.output
    assert [record["step"] for record in result.steps] == [1, 2, 3, 4]


def test_s21_tensorboard_is_refused_with_the_way_out(m0, data, project):
    train(m0, data, project, log="tensorboard").refused("not supported yet in this build", "tensorboard", "none")
