"""Sharded training against PyTorch's own FSDP2: two ranks of each, over Gloo, on the same rows in the same order."""
import os
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from transformers import AutoModelForCausalLM

from fixtures import models
from fixtures.data import chats, random_chats
from fixtures.reading import difference, weights
from fixtures.reference import Loop, loss_sum
from fixtures.runner import train
from fixtures.tokenizers import chat_ids

RANKS = 2
# 265 and 91 rows do not divide by two: shards are uneven, or padded.
TIED = dict(vocab_size=265, hidden_size=72, intermediate_size=91, num_hidden_layers=3, num_attention_heads=9,
            num_key_value_heads=3, tie_word_embeddings=True)
SHAPES = {"tied": TIED, "untied with biases": {**TIED, "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True}}
# 19 rows: in the last update of an epoch one rank has a row less than the other.
LOOPS = {1: Loop(lr=1e-3, epochs=2, batch_size=2, ranks=RANKS), 2: Loop(lr=1e-3, epochs=4, batch_size=2, accumulation=2, ranks=RANKS)}
CONVERSATIONS = random_chats(19, seed=11)
ROWS = [chat_ids(messages) for messages in CONVERSATIONS]
CASES = [(shape, accumulation) for shape in SHAPES for accumulation in LOOPS]


class ShardedLoop(Loop):
    """The reference loop on one rank of several: it runs its own rows, FSDP2 reduces the gradients."""

    def update(self, model, parameters, optimizer, rows, total):
        count = sum(sum(trained) for _, trained in rows)
        loss = torch.zeros(())
        for (ids, trained), weight in self.dealt(rows):
            part = weight * loss_sum(model, ids, trained) / count
            (part * self.ranks).backward()  # FSDP2 takes the mean over ranks, the loss is a sum
            loss += part.detach()
        dist.all_reduce(loss)
        assert all(isinstance(p.grad, DTensor) for p in parameters)
        norm = torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
        for group in optimizer.param_groups:
            group["lr"] = self.rate(len(self.losses), total)
        optimizer.step()
        optimizer.zero_grad()
        self.losses.append(loss.item())
        self.norms.append(norm.full_tensor().item())
        self.rates.append(optimizer.param_groups[0]["lr"])

    def dealt(self, rows):
        """(row, weight) of this rank: batch b goes to rank b % ranks. Every rank takes part in as many forward passes as the
        first one, which never has fewer rows, with a row of weight 0 where it has none of its own."""
        own = [[row for i, row in enumerate(rows) if i // self.batch_size % self.ranks == rank] for rank in range(self.ranks)]
        mine = own[dist.get_rank()]
        return [(row, 1) for row in mine] + [(rows[0], 0)] * (len(own[0]) - len(mine))


def shard(model):
    for layer in model.model.layers:
        fully_shard(layer)
    return fully_shard(model)


@dataclass
class Reference:
    losses: list
    norms: list
    rates: list
    weights: dict


def train_reference(folder, loop):
    model = shard(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32))
    ShardedLoop(**vars(replace(loop, losses=[], norms=[], rates=[]))).train(model, ROWS)
    return loop, get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))


def run_rank(rank, folder):
    """One rank of the reference: trains every case; rank 0 writes what came out."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=timedelta(seconds=60))
    results = {}
    for shape, accumulation in CASES:
        model = shard(AutoModelForCausalLM.from_pretrained(folder / shape, dtype=torch.float32))
        loop = ShardedLoop(**{**vars(LOOPS[accumulation]), "losses": [], "norms": [], "rates": []}).train(model, ROWS)
        state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        results[shape, accumulation] = (loop.losses, loop.norms, loop.rates, state)
    if rank == 0:
        torch.save(results, folder / "results.pt")
    dist.destroy_process_group()
