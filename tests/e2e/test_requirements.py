"""Claims of the documents that no other file shows; docs/requirements.md lists where each is tested."""
import json
import re

import pytest
import torch

from fixtures import models
from fixtures.data import chats, exchange, random_chats, texts, write_csv
from fixtures.reading import adapter, weights
from fixtures.runner import finish, ranks_of, run, start, train, training_command

UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2}


@pytest.fixture
def data(tmp_path):
    return chats(tmp_path / "data", random_chats(16, seed=4))


def bytes_in(text, word):
    number, unit = re.search(rf"([0-9.,]+) (\w+) {word}", text).groups()
    return float(number.replace(",", "")) * UNITS[unit]


@pytest.mark.parametrize("ranks", [1, 2])
def test_s06_ddp_by_name_is_the_default(m0, data, tmp_path, ranks):
    named = train(m0, data, tmp_path / "named", distributed_backend="ddp", ranks=ranks).ok()
    unnamed = train(m0, data, tmp_path / "unnamed", ranks=ranks).ok()
    assert named.losses == unnamed.losses
    assert (named.params["distributed_backend"], unnamed.params["distributed_backend"]) == ("ddp", None)
    engine = "single" if ranks == 1 else "ddp"
    assert all(f"{ranks} rank(s) on cpu, engine {engine}" in result.output for result in (named, unnamed))


def test_s08_each_rank_owns_its_part(m0, data, project):
    """Weights, gradients and optimizer state of a quarter, and at most one padding unit a group."""
    result = train(m0, data, project, distributed_backend="deepspeed", ranks=4).ok()
    line = next(line for line in result.output.splitlines() if "stage 3" in line)
    parameters = sum(tensor.numel() for tensor in weights(m0).values())
    padding = 32 * 16  # a part is a multiple of 32 elements; the model has few groups
    for word, each in (("weights", 4), ("gradients", 4), ("optimizer", 8)):
        owned = bytes_in(line, word) / each
        assert parameters / 4 * 0.99 <= owned <= (parameters / 4 + padding) * 1.01, (word, line)


@pytest.mark.parametrize("value", ["fsdp", "deepspeeed", "DDP2"])
def test_s09_any_other_backend_is_refused(m0, data, project, value):
    for ranks in (1, 2):
        train(m0, data, project, distributed_backend=value, ranks=ranks).refused("Unsupported distributed backend", value, "ddp",
                                                                                 "deepspeed")


def test_s15_texts_are_kept_as_they_are(m0, data, tmp_path):
    result = train(m0, data, "my-model_1.x", cwd=tmp_path)
    result.project = tmp_path / "my-model_1.x"
    params = result.ok().params
    assert (params["model"], params["data_path"], params["trainer"]) == (str(m0), str(data), "sft")
    assert params["project_name"] == str(tmp_path / "my-model_1.x")


@pytest.mark.parametrize("batch,ranks,counts", [(2, 1, [4 * 5, 4 * 5]), (2, 2, [8 * 5]), (1, 1, [2 * 5] * 4)])
def test_s17_batch_size_counts_rows_of_one_rank(m0, tmp_path, project, batch, ranks, counts):
    """Eight rows of 5 trained tokens, two micro-steps an update."""
    data = chats(tmp_path / "data", [exchange("q", "abcd")] * 8)
    result = train(m0, data, project, batch_size=batch, gradient_accumulation=2, ranks=ranks).ok()
    assert result.column("num_trained_tokens") == counts


def test_s20_adapters_of_rank_16_on_all_linears_but_the_head(m0, data, project):
    train(m0, data, project, peft=True, lora_r=16).ok()
    tensors = adapter(project / "adapter")
    names = {re.sub(r".*\.layers\.\d\.(?:self_attn|mlp)\.(\w+)\.lora_.\.weight", r"\1", name) for name in tensors}
    assert names == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert all(name.startswith("base_model.model.model.layers.") for name in tensors)
    assert {tensor.shape[0] for name, tensor in tensors.items() if "lora_A" in name} == {16}
    assert {tensor.shape[1] for name, tensor in tensors.items() if "lora_B" in name} == {16}
    config = json.loads((project / "adapter" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (16, 32)


def test_s25_a_file_and_flags_name_the_same_folder(m0, data, tmp_path):
    text = f"task: llm-sft\nbackend: local\nbase_model: {m0}\nproject_name: mine\nlog: none\ndata:\n  path: {data}\n"
    (tmp_path / "run.yaml").write_text(text)
    by_file = run("--config", tmp_path / "run.yaml", cwd=tmp_path, project=tmp_path / "mine").ok()
    first, *_, last = [line for line in by_file.stdout.splitlines() if line.startswith("Project folder:")]
    assert first == last == f"Project folder: {tmp_path / 'mine'}"
    by_flags = train(m0, data, "mine", cwd=tmp_path).ok()
    assert f"Project folder: {tmp_path / 'mine'}" in by_flags.stdout


@pytest.mark.parametrize("split", ["train", "first.part", "teil-2"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_s27_the_split_is_the_stem_of_a_file(m0, tmp_path, project, split, ending):
    folder = tmp_path / "data"
    if ending == "csv":
        write_csv(folder, ["text"], [["abc"], ["de"]], split=split)
    else:
        texts(folder, ["abc", "de"], split=split)
    texts(folder, ["no"] * 9, split="other")
    result = train(m0, folder, project, train_split=split).ok()
    assert result.column("num_trained_tokens") == [4 + 3] and f"{split}.{ending}" in result.output


def test_s28_without_a_validation_split_nothing_is_evaluated(m0, tmp_path, project):
    data = chats(tmp_path / "data", random_chats(4, seed=1))
    chats(data, random_chats(4, seed=2), split="valid")
    result = train(m0, data, project, "--eval-strategy", "steps", "--eval-steps", "1").ok()
    assert not result.evals and "eval_" not in json.dumps(result.history)
    assert "eval_strategy has no effect" in result.output


def test_s31_log_none_writes_no_tracker_files(m0, data, project):
    result = train(m0, data, project, log="none").ok()
    written = {path.name for path in project.rglob("*")}
    assert not {"wandb", "runs", ".leet_launched"} & written and not any("tfevents" in name for name in written)
    assert "W&B" not in result.output


def test_s35_variables_of_a_rank(m0, data, project):
    command = training_command(m0, data, project, ranks=2, epochs=1000000, batch_size=1)
    process = start(command)
    try:
        next(line for line in process.stdout if "'loss'" in line)
        found = {rank: member.environ() for rank, member in ranks_of(process).items()}
    finally:
        process.terminate()
        finish(process, 30)
    for rank in (0, 1):
        assert [found[rank][name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")] == \
            [str(rank), str(rank), "2", "2"]
        assert found[rank]["MASTER_ADDR"] == "127.0.0.1" and 0 < int(found[rank]["MASTER_PORT"]) < 65536
    assert found[0]["MASTER_PORT"] == found[1]["MASTER_PORT"]


@pytest.mark.parametrize("backend", ["ddp", "zero2", "zero3"])
def test_s39_an_epoch_is_each_row_once(m0, tmp_path, project, backend):
    """Rows of 1, 2, 4, ... trained letters: an update's token count tells which rows were in it."""
    rows = 7
    data = chats(tmp_path / "data", [exchange("q", "a" * 2**n) for n in range(rows)])
    result = train(m0, data, project, distributed_backend=backend, ranks=2, batch_size=1, gradient_accumulation=1, epochs=2,
                   model_max_length=256).ok()
    counts = result.column("num_trained_tokens")
    assert len(counts) == 2 * 4  # ceil(7 / 2) updates an epoch; the last has one row
    for epoch in (counts[:4], counts[4:]):
        assert sum(epoch) == sum(2**n + 1 for n in range(rows))
        in_update = [[n for n in range(rows) if (count - size) >> n & 1] for count, size in zip(epoch, (2, 2, 2, 1))]
        assert [len(found) for found in in_update] == [2, 2, 2, 1]
        assert sorted(sum(in_update, [])) == list(range(rows))


def test_s40_two_ranks_with_two_rows_are_one_rank_with_four(m0, data, tmp_path):
    one = train(m0, data, tmp_path / "one", batch_size=4, gradient_accumulation=1, lr=1e-3).ok()
    two = train(m0, data, tmp_path / "two", "--check-replicas", batch_size=2, gradient_accumulation=1, lr=1e-3, ranks=2).ok()
    assert two.losses == pytest.approx(one.losses, rel=1e-5) and len(two.losses) == 4
    assert len(two.column("weights_checksum")) == 4  # compared over ranks after every update


@pytest.mark.parametrize("precision,dtype", [(None, torch.float32), ("bf16", torch.bfloat16)])
def test_s44_one_model_with_the_names_of_its_base(m0, data, project, precision, dtype):
    train(m0, data, project, distributed_backend="deepspeed", ranks=3, mixed_precision=precision).ok()
    saved, base = weights(project), weights(m0)
    assert {name: tensor.shape for name, tensor in saved.items()} == {name: tensor.shape for name, tensor in base.items()}
    assert {tensor.dtype for tensor in saved.values()} == {dtype}
    assert not (project / "model.safetensors.index.json").exists()


def test_s47_no_trainer_is_plain_language_modelling(m0, tmp_path, project):
    data = texts(tmp_path / "data", ["abcd", "ef"])
    result = run("llm", "--train", "--model", m0, "--data-path", data, "--project-name", project, "--log", "none",
                 "--logging-steps", "1", project=project).ok()
    assert result.params["trainer"] == "default" and result.column("num_trained_tokens") == [5 + 3]
    assert "Starting default/generic CLM training..." in result.output


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_s48_language_models_never_choose_zero3_by_themselves(m0, data, project, ranks):
    result = train(m0, data, project, ranks=ranks).ok()
    assert f"{ranks} rank(s) on cpu, engine ddp" in result.output and "zero" not in result.output.lower()


@pytest.mark.parametrize("backend", ["ddp", "deepspeed"])
def test_s52_checkpoints_of_adapters_hold_whole_tensors(m0, data, tmp_path, project, backend):
    train(m0, data, project, distributed_backend=backend, ranks=2, peft=True, lora_r=4, save_strategy="epoch").ok()
    (folder,) = project.glob("checkpoint-*")
    tensors = adapter(folder)
    assert len(tensors) == 28 and all(tensor.numel() > 0 for tensor in tensors.values())
    assert not [path.name for path in folder.rglob("*") if path.suffix in (".bin", ".pt", ".pth")]
    names = {path.name for path in folder.iterdir()}
    assert {"adapter_model.safetensors", "adapter_config.json", "optimizer.safetensors", "trainer_state.json"} <= names


def test_s53_adapters_of_both_engines_are_equal(m0, data, tmp_path):
    options = {"ranks": 2, "peft": True, "lora_r": 4, "lora_dropout": 0, "lr": 1e-3}
    found = {}
    for backend in ("ddp", "deepspeed"):
        train(m0, data, tmp_path / backend, distributed_backend=backend, **options).ok()
        found[backend] = adapter(tmp_path / backend / "adapter")
    assert found["ddp"].keys() == found["deepspeed"].keys()
    for name, tensor in found["ddp"].items():
        assert re.fullmatch(r"base_model\.model\.model\.layers\.\d\.\w+\.\w+\.lora_[AB]\.weight", name)
        assert torch.allclose(tensor, found["deepspeed"][name], rtol=0, atol=1e-6)


def test_models_of_the_fixtures_are_what_the_numbers_above_assume(m0):
    assert sum(tensor.numel() for tensor in weights(m0).values()) == 35488 and models.VOCAB == 264
