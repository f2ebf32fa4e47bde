"""What a resumed run may change, what it may not, and what two runs in one folder do."""
import shutil
import signal
import time

import psutil
import pytest

from fixtures import models
from fixtures.data import chats, random_chats
from fixtures.runner import kill_tree, start, train, training_command

RUN = {"lr": 1e-3, "batch_size": 1, "gradient_accumulation": 2, "epochs": 2, "save_strategy": "steps", "save_steps": 2,
       "save_total_limit": 9}
LORA = {"peft": True, "lora_r": 4, "lora_alpha": 8, "merge_adapter": False}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return chats(tmp_path_factory.mktemp("guards") / "data", random_chats(12, seed=5))


@pytest.fixture(scope="module")
def full(m0, data, tmp_path_factory):
    return train(m0, data, tmp_path_factory.mktemp("full") / "project", ranks=2, **RUN).ok().project


@pytest.fixture(scope="module")
def lora(m0, data, tmp_path_factory):
    return train(m0, data, tmp_path_factory.mktemp("lora") / "project", **RUN, **LORA).ok().project


def refused(result, *words):
    assert result.code == 2, result.output[-2000:]
    for word in words:
        assert word in result.output, result.output[-2000:]


def test_trained_weights_without_a_place_are_not_dropped(m0, m0t, data, full, lora, project):
    refused(train(m0, data, project, resume_from_checkpoint=lora / "checkpoint-4", target_modules="q_proj", **RUN, **LORA),
            "no place for", "--target-modules")
    refused(train(m0t, data, project, resume_from_checkpoint=full / "checkpoint-4", **RUN), "no place for", "lm_head.weight")


def test_an_adapter_keeps_its_scale_and_its_base(m0, data, lora, project, tmp_path):
    refused(train(m0, data, project, resume_from_checkpoint=lora / "checkpoint-4", **RUN, **{**LORA, "lora_alpha": 16}),
            "--lora-alpha 8", "16")
    other = models.write_m0(tmp_path / "other", seed=77)
    refused(train(other, data, project, resume_from_checkpoint=lora / "checkpoint-4", **RUN, **LORA), "another base model")


def test_changes_that_are_allowed_are_said(m0, data, full, project, tmp_path):
    more = chats(tmp_path / "more", random_chats(16, seed=6))
    run = train(m0, more, project, resume_from_checkpoint=full / "checkpoint-2", optimizer="sgd", ranks=2, **RUN).ok()
    assert "another optimizer" in run.output and "another training data" in run.output


def test_the_same_global_batch_is_no_change(m0, data, full, project):
    run = train(m0, data, project, resume_from_checkpoint=full / "checkpoint-2", **{**RUN, "gradient_accumulation": 4}).ok()
    assert "differ" not in run.output and "another" not in run.output


def test_nothing_left_to_do_is_an_error(m0, data, full, project):
    refused(train(m0, data, project, resume_from_checkpoint=full / "checkpoint-6", ranks=2, **{**RUN, "epochs": 1}),
            "nothing left to do", "--epochs")


def test_an_empty_path_is_an_error(m0, data, project):
    refused(train(m0, data, project, "--resume-from-checkpoint", "", **RUN), "resume-from-checkpoint", "empty")


def test_a_project_folder_is_not_a_checkpoint(m0, data, full, project):
    refused(train(m0, data, project, resume_from_checkpoint=full, ranks=2, **RUN), "project folder", "checkpoint-")


def test_only_damaged_checkpoints_do_not_mean_a_fresh_start(m0, data, full, project):
    for number in (2, 4):
        shutil.copytree(full / f"checkpoint-{number}", project / f"checkpoint-{number}")
        (project / f"checkpoint-{number}" / "optimizer.safetensors").write_bytes(b"cut")
    result = train(m0, data, project, resume_from_checkpoint="auto", ranks=2, **RUN)
    assert result.code == 2 and "none of the 2 checkpoint(s)" in result.output, result.output[-2000:]
    assert (project / "checkpoint-2").exists()


@pytest.mark.parametrize("ranks", (1, 2))
def test_a_broken_model_is_found_at_loading(data, project, tmp_path, ranks):
    config = models.llama_config()
    tensors = models.random_weights(config)
    tensors["model.layers.1.mlp.up_proj.weight"][3, 5] = float("nan")
    model = models.write_model(tmp_path / "nan", config, tensors)
    refused(train(model, data, project, ranks=ranks, **RUN), "model.layers.1.mlp.up_proj.weight", "not finite")


def test_two_runs_in_one_folder(m0, data, project):
    command = training_command(m0, data, project, **{**RUN, "epochs": 100000, "save_strategy": "no"})
    first = start(command)
    try:
        for line in first.stdout:
            if "'loss'" in line:
                break
        refused(train(m0, data, project, **RUN), "in use by another training run", str(first.pid))
    finally:
        kill_tree(first)
        first.stdout.close()
        first.stderr.close()
    # The lock went with the process.
    assert train(m0, data, project, **{**RUN, "epochs": 1}).ok().steps


def test_what_an_interrupted_save_left_is_removed(m0, data, project):
    left = project / ".tmp-checkpoint-7"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"half")
    run = train(m0, data, project, **{**RUN, "epochs": 1}).ok()
    assert not left.exists() and ".tmp-checkpoint-7" in run.output


def test_a_stopped_rank_is_named_by_the_timeout(m0, data, project):
    command = training_command(m0, data, project, ranks=2, ddp_timeout=3, **{**RUN, "epochs": 100000, "save_strategy": "no"})
    process = start(command)
    try:
        for line in process.stdout:
            if "'loss'" in line:
                break
        ranks = {p.environ().get("RANK"): p for p in psutil.Process(process.pid).children()}
        ranks["1"].send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        out, err = process.communicate(timeout=40)
        assert time.monotonic() - begin < 30
        assert "within 3 s (--ddp-timeout)" in out + err, (out + err)[-2000:]
    finally:
        kill_tree(process)
        process.stdout.close()
        process.stderr.close()


def test_far_more_ranks_than_cores_are_refused(m0, data, project):
    train(m0, data, project, ranks=1000, **RUN).refused("ranks", "core")


def test_a_run_whose_only_update_is_warm_up_says_so(m0, data, project):
    assert "nothing is trained" in train(m0, data, project, batch_size=16, gradient_accumulation=1, epochs=1).ok().output


@pytest.mark.parametrize("file", ("README.md", "config.json", "weights.safetensors"))
def test_somebody_elses_folder_is_not_taken(m0, data, project, file):
    project.mkdir()
    (project / file).write_text("mine")
    result = train(m0, data, project, **RUN)
    assert result.code == 2 and file in result.output and "choose another name" in result.output
    assert (project / file).read_text() == "mine" and len(list(project.iterdir())) == 1


def test_folders_that_only_look_like_ours_stay(m0, data, project):
    for name in ("checkpoint-1", ".tmp-mine"):
        (project / name).mkdir(parents=True)
        (project / name / "important.txt").write_text("mine")
    train(m0, data, project, **{**RUN, "save_total_limit": 1}).ok()
    for name in ("checkpoint-1", ".tmp-mine"):
        assert (project / name / "important.txt").read_text() == "mine"
