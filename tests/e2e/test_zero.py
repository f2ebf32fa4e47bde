"""ZeRO-2 and ZeRO-3 from the command line: the same files as DDP, resume on any number of ranks, memory, failures."""
import re
import shutil
import signal
import threading
import time

import pytest
import torch
from safetensors.torch import load_file

from fixtures import models
from fixtures.data import chats, random_chats, texts
from fixtures.reading import adapter, checkpoints, difference, model_files, same_bits, weights
from fixtures.runner import family, finish, gone, kill_tree, start, train, training_command

ENGINES = ("zero2", "zero3")
LORA = {"peft": True, "lora_r": 4, "lora_alpha": 8, "lora_dropout": 0.1}
RUN = {"lr": 1e-3, "batch_size": 1, "gradient_accumulation": 2, "epochs": 2, "save_strategy": "steps", "save_steps": 2,
       "save_total_limit": 10}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return chats(tmp_path_factory.mktemp("zero") / "data", random_chats(24, seed=5))


def file_bytes(folder):
    """Relative name -> content of every file that holds numbers."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.safetensors"))}


@pytest.mark.parametrize("kind", ({}, LORA), ids=("full", "lora"))
@pytest.mark.parametrize("ranks", (2, 3))
def test_strict_runs_write_the_same_bytes(m0t, data, tmp_path, kind, ranks):
    """S44, S52, S53: checkpoints, final model and adapters of the three engines, byte for byte."""
    runs = {}
    for engine in ("ddp", *ENGINES):
        runs[engine] = train(m0t, data, tmp_path / engine, "--deterministic", distributed_backend=engine, ranks=ranks,
                             **RUN, **kind).ok()
    expected = file_bytes(tmp_path / "ddp")
    assert len(expected) > 4 and len(checkpoints(tmp_path / "ddp")) >= 3
    for engine in ENGINES:
        assert runs[engine].losses == runs["ddp"].losses
        assert runs[engine].column("grad_norm") == runs["ddp"].column("grad_norm")
        found = file_bytes(tmp_path / engine)
        assert found.keys() == expected.keys()
        assert [name for name in found if found[name] != expected[name]] == []


def test_s12_losses_are_those_of_ddp(m0, data, tmp_path):
    ddp = train(m0, data, tmp_path / "ddp", ranks=2, **RUN).ok()
    zero3 = train(m0, data, tmp_path / "zero3", ranks=2, distributed_backend="deepspeed", **RUN).ok()
    assert zero3.losses == pytest.approx(ddp.losses, rel=1e-5)
    assert difference(weights(zero3.project), weights(ddp.project)) < 1e-5


def test_s43_the_configuration_in_effect_is_printed(m0, data, project):
    run = train(m0, data, project, ranks=2, distributed_backend="deepspeed", zero3_resident=1, **RUN).ok()
    line = next(line for line in run.output.splitlines() if "stage 3" in line)
    for word in ("offload_optimizer none", "offload_param none", "gradient_accumulation_steps 2",
                 "gradient_clipping 1", "prefetch 1 unit", "resident units 1", "per rank", "buffers"):
        assert word in line, line


def test_one_rank_has_nobody_to_share_with(m0, data, project):
    run = train(m0, data, project, distributed_backend="zero3", **RUN).ok()
    assert "nobody to share with" in run.output


@pytest.mark.parametrize("ranks", (2, 3))
@pytest.mark.parametrize("shards", (1, 3))
def test_br04_saved_files_hold_the_model(tmp_path, data, project, ranks, shards):
    config = models.llama_config()
    before = models.random_weights(config)
    model = models.write_model(tmp_path / "model", config, before, shards=shards)
    rows = chats(tmp_path / "two", random_chats(2, seed=9))
    train(model, rows, project, ranks=ranks, distributed_backend="deepspeed", lr=0, batch_size=1,
          gradient_accumulation=1, epochs=2, save_strategy="steps", save_steps=1).ok()
    assert checkpoints(project)
    for folder in (project, project / f"checkpoint-{checkpoints(project)[-1]}"):
        assert same_bits(weights(folder), before)
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            assert (folder / name).stat().st_size > 0
        assert all(file.exists() for file in model_files(folder))


def test_br04_adapters_hold_no_empty_tensor(m0, data, project):
    train(m0, data, project, ranks=3, distributed_backend="deepspeed", **RUN, **LORA).ok()
    for folder in (project / "adapter", project / f"checkpoint-{checkpoints(project)[-1]}"):
        tensors = adapter(folder)
        assert len(tensors) == 2 * 7 * 2  # A and B of seven layers in two blocks
        assert all(t.numel() > 0 and name.startswith("base_model.model.model.layers.") for name, t in tensors.items())


@pytest.fixture(scope="module")
def six(m0, data, tmp_path_factory):
    """Six updates on 4 ranks under ZeRO-3, a checkpoint after each third one."""
    folder = tmp_path_factory.mktemp("six") / "project"
    return train(m0, data, folder, ranks=4, **SIX).ok()


SIX = {"distributed_backend": "deepspeed", "lr": 1e-3, "batch_size": 1, "gradient_accumulation": 1, "epochs": 1,
       "save_strategy": "steps", "save_steps": 3, "save_total_limit": 10}
# (engine, ranks, accumulation): the same 4 rows an update
ELASTIC = [("deepspeed", 2, 2), ("deepspeed", 1, 4), ("ddp", 2, 2), ("ddp", 4, 1), ("zero2", 2, 2), ("ddp", 1, 4)]


@pytest.mark.parametrize("engine,ranks,accumulation", ELASTIC)
def test_br14_resume_on_another_number_of_ranks(m0, data, six, project, engine, ranks, accumulation):
    options = {**SIX, "distributed_backend": engine, "gradient_accumulation": accumulation, "ranks": ranks}
    run = train(m0, data, project, resume_from_checkpoint=six.project / "checkpoint-3", **options).ok()
    assert run.losses == pytest.approx(six.losses, rel=1e-5)
    assert len(run.steps) == 6
    for name in ("model.safetensors", "optimizer.safetensors"):
        ours = load_file(project / "checkpoint-6" / name)
        assert difference(ours, load_file(six.project / "checkpoint-6" / name)) < 1e-5


def test_br14_chain_over_all_counts(m0, data, tmp_path):
    """4 -> 2 -> 1 -> 3 ranks and from engine to engine: each goes on from what the one before it left."""
    straight = train(m0, data, tmp_path / "straight", ranks=1, **{**SIX, "gradient_accumulation": 4, "save_steps": 1}).ok()
    chain = [("zero3", 4, 1), ("ddp", 2, 2), ("zero3", 2, 2), ("zero2", 1, 4)]
    checkpoint = None
    for number, (engine, ranks, accumulation) in enumerate(chain, 1):
        options = {**SIX, "distributed_backend": engine, "gradient_accumulation": accumulation, "ranks": ranks,
                   "save_steps": 1}
        run = train(m0, data, tmp_path / str(number), resume_from_checkpoint=checkpoint, **options).ok()
        assert run.losses == pytest.approx(straight.losses, rel=1e-5)
        checkpoint = run.project / f"checkpoint-{number}"
    # Three ranks cannot make the same global batch: a plain warning, and the run goes on.
    run = train(m0, data, tmp_path / "three", resume_from_checkpoint=checkpoint, **{**SIX, "ranks": 3}).ok()
    assert "batch settings differ" in run.output


def test_br14_a_missing_file_is_named(m0, data, six, project):
    broken = project.parent / "checkpoint-3"
    shutil.copytree(six.project / "checkpoint-3", broken)
    (broken / "optimizer.safetensors").unlink()
    result = train(m0, data, project, resume_from_checkpoint=broken, **SIX, ranks=2)
    assert result.code == 2 and "optimizer.safetensors" in result.output


@pytest.mark.parametrize("tied", (False, True), ids=("untied", "tied"))
def test_br25_growing_the_vocabulary(tmp_path, tied):
    config = models.llama_config(tie_word_embeddings=tied)
    before = models.random_weights(config)
    added = [{"id": 261 + i, "content": f"<new{i}>"} for i in range(8)]
    model = models.write_model(tmp_path / "model", config, before, added=added)
    rows = texts(tmp_path / "data", ["ab<new7>cd", "<new3>e", "fgh"])
    runs = {}
    for ranks in (1, 2, 3):
        runs[ranks] = train(model, rows, tmp_path / str(ranks), ranks=ranks, distributed_backend="deepspeed", lr=0,
                            batch_size=1, gradient_accumulation=-(-3 // ranks)).ok()
    grown = {ranks: weights(run.project) for ranks, run in runs.items()}
    for ranks, run in runs.items():
        assert run.losses[0] == pytest.approx(runs[1].losses[0], rel=1e-6)
        assert same_bits(grown[ranks], grown[1])
    names = ["model.embed_tokens.weight"] + ([] if tied else ["lm_head.weight"])
    for name in names:
        old, new = before[name], grown[2][name]
        assert new.shape[0] == 269 > old.shape[0]
        assert torch.equal(new[:old.shape[0]], old)
        mean = old.double().mean(0).float()
        assert all(torch.allclose(row, mean, atol=1e-7) for row in new[old.shape[0]:])


def wide_model(folder):
    """About 29 million parameters in blocks of equal size: 16 bytes each make the engines' needs differ clearly."""
    config = models.llama_config(hidden_size=384, intermediate_size=2048, num_hidden_layers=10, num_attention_heads=6,
                                 num_key_value_heads=6)
    return models.write_model(folder, config, models.random_weights(config))


def largest_data_size(process, ends):
    """Polls VmData, which RLIMIT_DATA limits, of the ranks until they end."""
    most = 0
    while process.poll() is None:
        for member in family(process)[1:]:
            try:
                status = open(f"/proc/{member.pid}/status").read()
            except OSError:
                continue
            found = re.search(r"VmData:\s+(\d+)", status)
            most = max(most, int(found[1]) * 1024 if found else 0)
        ends.wait(0.02)
    return most


def test_s13_a_memory_limit_between_the_engines_needs(tmp_path, data):
    """S59, E5: DDP says what ran out and what to do; ZeRO-3 trains within the same limit."""
    model = wide_model(tmp_path / "model")
    options = {"lr": 1e-4, "batch_size": 1, "gradient_accumulation": 1, "max_samples": 8, "ranks": 4}
    need = {}
    for engine in ("ddp", "deepspeed"):
        command = training_command(model, data, tmp_path / engine, distributed_backend=engine, **options)
        process = start(command)
        sizes = []
        watch = threading.Thread(target=lambda: sizes.append(largest_data_size(process, threading.Event())))
        watch.start()
        finish(process, 170, tmp_path / engine, command).ok()
        watch.join()
        need[engine] = sizes[0]
    assert need["ddp"] - need["deepspeed"] > 100 * 2**20, need
    limit = (need["ddp"] + need["deepspeed"]) // 2

    def limited(engine):
        command = training_command(model, data, tmp_path / f"limited-{engine}", distributed_backend=engine, **options)
        process = start(command, prefix=["/bin/sh", "-c", f'ulimit -d {limit // 1024}; exec "$@"', "sh"])
        return finish(process, 170, tmp_path / f"limited-{engine}", command)

    refused = limited("ddp")
    assert refused.code == 1, refused.output[-3000:]
    assert re.search(r"Rank \d ran out of memory \(wanted [0-9.]+ \wiB, free [0-9.]+ \w+ after giving up, limit [0-9.]+ \wiB by ulimit -d\) in ", refused.output), \
        refused.output[-3000:]
    for word in ("Reduce --batch-size (now 1)", "--distributed-backend deepspeed"):
        assert word in refused.output
    assert len(limited("deepspeed").ok().steps) == 2


@pytest.mark.parametrize("victim", (0, 1, 2))
def test_a_rank_killed_in_the_middle_of_a_gather(m0, data, project, victim):
    command = training_command(m0, data, project, ranks=3, distributed_backend="zero3", epochs=1000000, lr=1e-4,
                               batch_size=1, gradient_accumulation=1)
    process = start(command)
    watchdog = threading.Timer(90, kill_tree, [process])
    watchdog.start()
    try:
        for line in process.stdout:
            if "'loss'" in line:
                break
        members = family(process)
        numbered = {int(m.environ()["RANK"]): m for m in members if "--run-rank" in m.cmdline()}
        # Stopped first: the others are then inside a collective, waiting for it, when it dies.
        numbered[victim].send_signal(signal.SIGSTOP)
        others = [m for rank, m in numbered.items() if rank != victim]
        wait_until_asleep(others)
        begin = time.monotonic()
        numbered[victim].send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=15)
        assert time.monotonic() - begin < 5
        assert gone(members)
        assert process.returncode == 128 + signal.SIGKILL
        assert re.search(rf"rank {victim} of 3 failed in update \d+: killed by signal 9", out + err), (out + err)[-3000:]
    finally:
        watchdog.cancel()
        kill_tree(process)
        process.stdout.close()
        process.stderr.close()


def wait_until_asleep(processes, timeout=20):
    """Until none of them has used the processor for a while: all wait for the stopped one."""
    end = time.monotonic() + timeout
    before = None
    while time.monotonic() < end:
        now = [sum(p.cpu_times()[:2]) for p in processes]
        if now == before:
            return
        before = now
        threading.Event().wait(0.3)
    raise AssertionError("the other ranks do not wait")
