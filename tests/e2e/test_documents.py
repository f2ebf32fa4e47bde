"""The blocks of the user's documents, as they stand in tests/golden/documents, run on a small model.

Nothing in them is replaced: the model that they name is a folder of that name. Only the three dots, which stand for
flags, are written out.
"""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from fixtures.data import texts
from fixtures.ports import free_port
from fixtures.reading import adapter, weights
from fixtures.runner import ROOT, Result, binary, environment

GOLDEN = ROOT / "tests" / "golden" / "documents"
LANGUAGES = ("es", "pt")
BLOCKS = ("api.py", "config.yaml", "environment.sh", "multi-node.sh", "quick-start-ddp.sh", "quick-start-deepspeed.sh",
          "select-gpus.sh")
ROWS = 40
TWO = {"AUTOTRAIN_FORCE_NUM_PROCESSES": "2"}
FLAGS = "--model meta-llama/Llama-3.2-1B --data-path ./data --trainer sft --project-name"

pytestmark = pytest.mark.parametrize("language", LANGUAGES)


@pytest.fixture
def place(m0, tmp_path):
    """A folder as the documents assume it: the models, ./data, and the program on PATH."""
    for name in ("Llama-3.2-1B", "Llama-3.2-3B"):
        link = tmp_path / "meta-llama" / name
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(m0)
    texts(tmp_path / "data", [f"row {n} of forty, with a few words in it" for n in range(ROWS)])
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "aitraining").symlink_to(binary())
    return tmp_path


def text_of(language, name):
    return (GOLDEN / language / name).read_text(encoding="utf-8")


def in_place(words, place, project, env):
    env = environment({"PATH": f"{place / 'bin'}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": "", **env})
    done = subprocess.run(words, cwd=place, env=env, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    return Result(done.returncode, done.stdout, done.stderr, place / project, words)


def shell(text, place, project="my-model", env=None):
    return in_place(["bash", "-euc", text], place, project, env or {})


def python(text, place, project="distributed-model", env=None):
    return in_place([sys.executable, "-c", text], place, project, {"PYTHONPATH": ROOT / "python", **(env or {})})


def check(result, updates, ranks, engine, rank_of_adapter=16):
    """The run trained `updates` updates with that engine, and left a whole model and adapter."""
    result.ok()
    assert result.state["global_step"] == updates
    for rank in range(ranks if ranks > 1 else 0):
        assert f"rank={rank} world={ranks}" in result.output
    assert f"launch: {ranks} rank(s) on cpu, engine {engine}" in result.output
    assert weights(result.project)["model.embed_tokens.weight"].shape == (264, 32)
    config = json.loads((result.project / "adapter" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (rank_of_adapter, 32)
    tensors = adapter(result.project / "adapter")
    assert len(tensors) == 2 * 2 * 7 and all(tensor.numel() for tensor in tensors.values())
    assert all(tensor.shape[0] == rank_of_adapter for name, tensor in tensors.items() if "lora_A" in name)
    return result


def test_every_block_is_there(language):
    assert sorted(p.name for p in (GOLDEN / language).iterdir()) == sorted(BLOCKS)


def test_s10_quick_start(language, place):
    check(shell(text_of(language, "quick-start-ddp.sh"), place), updates=5, ranks=1, engine="single")


def test_s12_quick_start_on_two_ranks(language, place):
    """DDP without a flag, ZeRO-3 with it, the same losses."""
    ddp = check(shell(text_of(language, "quick-start-ddp.sh"), place, env=TWO), updates=3, ranks=2, engine="ddp")
    losses = ddp.losses
    zero3 = check(shell(text_of(language, "quick-start-deepspeed.sh"), place, env=TWO), updates=3, ranks=2, engine="zero3")
    assert zero3.losses == pytest.approx(losses, rel=1e-5)
    assert zero3.params["distributed_backend"] == "deepspeed"


def test_s47_multi_node_block_on_one_node(language, place):
    result = check(shell(text_of(language, "multi-node.sh"), place, env=TWO), updates=3, ranks=2, engine="zero3")
    assert result.params["trainer"] == "default"
    assert "Starting default/generic CLM training..." in result.output


def test_s45_multi_node_block_on_two_nodes(language, place):
    """Typed as it stands on each node; accelerate's configuration file says which node it is."""
    port, nodes = free_port(), []
    for number in (0, 1):
        home = place / f"home{number}" / "accelerate"
        home.mkdir(parents=True)
        (home / "default_config.yaml").write_text(
            f"compute_environment: LOCAL_MACHINE\nmachine_rank: {number}\nmain_process_ip: 127.0.0.1\n"
            f"main_process_port: {port}\nnum_machines: 2\nnum_processes: 4\n")
    with ThreadPoolExecutor() as pool:
        for number in (0, 1):
            env = {"HF_HOME": place / f"home{number}"}
            nodes.append(pool.submit(shell, text_of(language, "multi-node.sh"), place, env=env))
    first, second = (node.result().ok() for node in nodes)
    assert first.state["global_step"] == 2  # 40 rows, 2 x 4 x 4 an update
    assert "engine zero3" in first.output and "world=4" in first.output + second.output
    assert "Project folder" in first.stdout and "Project folder" not in second.stdout


def test_s54_gpu_selection(language, place):
    text = text_of(language, "select-gpus.sh")
    assert text.count("...") == 2
    text = text.replace("...", f"{FLAGS} some", 1).replace("...", f"{FLAGS} all", 1)
    result = shell(text, place, project="some", env=TWO).ok()
    assert result.output.count("rank=1 world=2 pid=") == 2
    for project in ("some", "all"):
        assert json.loads((place / project / "trainer_state.json").read_text())["global_step"] == 3


@pytest.mark.parametrize("ranks", (1, 2))
def test_s14_python(language, place, ranks):
    env = {"AUTOTRAIN_FORCE_NUM_PROCESSES": ranks}
    result = check(python(text_of(language, "api.py"), place, env=env), updates=15 if ranks == 1 else 9, ranks=ranks,
                   engine="single" if ranks == 1 else "zero3")
    assert result.params["mixed_precision"] == "bf16" and result.params["project_name"] == str(result.project)


def test_s22_yaml(language, place):
    """The same run as the Python block's, but for the template."""
    file = place / "config.yaml"
    file.write_text(text_of(language, "config.yaml"), encoding="utf-8")
    by_python = check(python(text_of(language, "api.py"), place, env=TWO), updates=9, ranks=2, engine="zero3").params
    result = check(shell("aitraining --config config.yaml", place, "distributed-model", TWO), updates=9, ranks=2,
                   engine="zero3")
    by_file = result.params
    assert {name for name in by_file if by_file[name] != by_python[name]} == {"chat_template"}
    assert by_file["chat_template"] == "tokenizer" and by_file["valid_split"] is None
    assert not result.evals


def test_s56_environment(language, place):
    """`accelerate env`, with this program's name in front."""
    text = text_of(language, "environment.sh")
    assert text.split() == ["accelerate", "env"]
    result = shell(f"aitraining {text}", place).ok()
    for word in ("aitraining", "Platform", "LibTorch", "CUDA", "NCCL", "GPU", "RAM", "zero3"):
        assert word.lower() in result.stdout.lower(), word
