"""Training on two ranks against PyTorch's own FSDP2 over Gloo: the same weights, rows and order, every engine."""
import os
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.multiprocessing import spawn
from transformers import AutoModelForCausalLM

from fixtures import models
from fixtures.data import chats, random_chats
from fixtures.reading import difference, weights
from fixtures.reference import Loop, loss_sum
from fixtures.runner import train
from fixtures.tokenizers import chat_ids
from test_updates import flags

RANKS = 2
# 265 rows of the embedding and 91 of gate and up do not divide by two.
TIED = dict(vocab_size=265, hidden_size=72, intermediate_size=91, num_hidden_layers=3, num_attention_heads=9,
            num_key_value_heads=3, tie_word_embeddings=True)
SHAPES = {"tied": TIED, "untied-biases": {**TIED, "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True}}
ACCUMULATIONS = (1, 2)
CASES = [(shape, accumulation) for shape in SHAPES for accumulation in ACCUMULATIONS]
# 19 rows: in the last update of an epoch the second rank has a row less than the first.
CONVERSATIONS = random_chats(19, seed=11)
ROWS = [chat_ids(messages) for messages in CONVERSATIONS]


class ShardedLoop(Loop):
    """The reference loop as one of several ranks: each runs its own rows, FSDP2 reduces the gradients."""

    def update(self, model, parameters, optimizer, rows, total):
        count = sum(sum(trained) for _, trained in rows)
        loss = torch.zeros(())
        for (ids, trained), weight in self.own(rows):
            part = weight * loss_sum(model, ids, trained) / count
            (part * self.ranks).backward()  # FSDP2 takes the mean over ranks, the loss is a sum
            loss += part.detach()
        dist.all_reduce(loss)
        assert all(isinstance(p.grad, DTensor) for p in parameters)
        norm = torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm).full_tensor()
        rate = self.rate(len(self.losses), total)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        optimizer.zero_grad()
        self.losses.append(loss.item())
        self.norms.append(norm.item())
        self.rates.append(rate)

    def own(self, rows):
        """(row, weight) pairs of this rank: batch b goes to rank b % ranks. All ranks must run equally often, so one with
        fewer rows than the first runs some row with weight 0."""
        dealt = [[row for i, row in enumerate(rows) if i // self.batch_size % self.ranks == rank]
                 for rank in range(self.ranks)]
        mine = dealt[dist.get_rank()]
        return [(row, 1) for row in mine] + [(rows[0], 0)] * (len(dealt[0]) - len(mine))


def loop_of(accumulation, kind=Loop):
    """Ten updates: five an epoch without accumulation, or three with it and a short last one."""
    return kind(lr=1e-3, epochs=4 if accumulation > 1 else 2, batch_size=2, accumulation=accumulation, ranks=RANKS)


def run_rank(rank, folder):
    """Trains every case as one rank; the first rank writes what came out."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=timedelta(seconds=60))
    results = {}
    for shape, accumulation in CASES:
        model = AutoModelForCausalLM.from_pretrained(folder / shape, dtype=torch.float32)
        for layer in model.model.layers:
            fully_shard(layer)
        loop = loop_of(accumulation, ShardedLoop).train(fully_shard(model), ROWS)
        state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        results[shape, accumulation] = {"losses": loop.losses, "norms": loop.norms, "rates": loop.rates, "weights": state}
    if rank == 0:
        torch.save(results, folder / "results.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models and data of all cases."""
    folder = tmp_path_factory.mktemp("sharded")
    for name, changes in SHAPES.items():
        config = models.llama_config(**changes)
        models.write_model(folder / name, config, models.random_weights(config, seed=3, std=0.06))
    chats(folder / "data", CONVERSATIONS)
    return folder


@pytest.fixture(scope="module")
def reference(folder):
    spawn(run_rank, (folder,), nprocs=RANKS)
    return torch.load(folder / "results.pt", weights_only=True)


@pytest.mark.parametrize("backend", ["ddp", "zero2", "zero3"])
@pytest.mark.parametrize("shape, accumulation", CASES)
def test_full(folder, reference, project, shape, accumulation, backend):
    theirs = reference[shape, accumulation]
    options = flags(loop_of(accumulation))
    run = train(folder / shape, folder / "data", project, distributed_backend=backend, **options).ok()
    assert len(run.steps) == len(theirs["losses"]) == (10 if accumulation == 1 else 12)
    assert theirs["losses"][-1] < theirs["losses"][0] - 0.2
    assert max(theirs["norms"]) > 1, "clipping has no part in this"
    assert run.column("learning_rate") == pytest.approx(theirs["rates"], rel=1e-9, abs=1e-15)
    assert run.losses == pytest.approx(theirs["losses"], rel=1e-5)
    assert run.column("grad_norm") == pytest.approx(theirs["norms"], rel=1e-4)
    saved = weights(project)
    assert difference(saved, {name: theirs["weights"][name] for name in saved}) < 1e-5
