"""Which tokens are trained: BR-06 (pad = eos), BR-13 (nothing left after truncation), BR-26 (two bos)."""
import re

import pytest

from fixtures import models, tokenizers
from fixtures.data import chats, exchange, texts
from fixtures.reading import weights
from fixtures.runner import train
from fixtures.tokenizers import BOS, C0, C0B, EOS, chat_ids, text_ids
from fixtures.tools import tokenize

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
LONG = exchange("q" * 60, "a")  # 79 tokens before the answer


def eos_model(folder, bos, pad):
    return models.write_m0(folder, bos=bos, eos="</s>", pad=pad)


@pytest.mark.parametrize("pad", ["</s>", None])
@pytest.mark.parametrize("bos", [None, "<s>"])
def test_br06_the_real_end_is_trained(tmp_path, pad, bos):
    model = eos_model(tmp_path / "model", bos, pad)
    rows = tokenize(model, [{"text": "ab"}, {"text": "abcdef"}], tmp_path)
    for row, text in zip(rows, ("ab", "abcdef")):
        ids, trained = text_ids(text, bos=bos is not None, eos=EOS)
        assert (row["ids"], row["trained"]) == (ids, trained)
        assert row["ids"].count(EOS) == 1


@pytest.mark.parametrize("padding", ["right", "left"])
@pytest.mark.parametrize("pad", ["</s>", None])
@pytest.mark.parametrize("bos,tokens", [(None, 8), ("<s>", 10)])
def test_br06_training_counts_them(tmp_path, project, pad, padding, bos, tokens):
    model = eos_model(tmp_path / "model", bos, pad)
    data = texts(tmp_path / "data", ["ab", "abcdef"])
    run = train(model, data, project, "--add-eos-token", batch_size=2, gradient_accumulation=1, padding=padding).ok()
    assert run.column("num_trained_tokens") == [tokens]
    for name in TOKENIZER_FILES:
        assert (project / name).read_bytes() == (model / name).read_bytes()


def test_br06_no_eos_when_not_wanted(tmp_path, project):
    model = eos_model(tmp_path / "model", None, "</s>")
    data = texts(tmp_path / "data", ["ab", "abcdef"])
    run = train(model, data, project, batch_size=2, gradient_accumulation=1, add_eos_token=False).ok()
    assert run.column("num_trained_tokens") == [6]


@pytest.mark.parametrize("batch", [1, 2])
def test_br13_rows_without_a_trained_token(mb, tmp_path, project, batch):
    data = chats(tmp_path / "data", [models.SAMPLE_A, LONG])
    run = train(mb, data, project, lr=1e-4, warmup_ratio=0, model_max_length=40, batch_size=batch,
                gradient_accumulation=1).ok()
    assert run.losses == pytest.approx([models.MEAN_A] * len(run.losses), abs=2e-6)
    assert sum(run.column("num_trained_tokens")) == models.TOKENS_A
    assert re.search(r"(row|line)[s]?\W+2\b", run.output), run.output
    assert all(tensor.isfinite().all() for tensor in weights(project).values())


def test_br13_only_such_rows(mb, tmp_path, project):
    data = chats(tmp_path / "data", [LONG])
    result = train(mb, data, project, model_max_length=40).refused("79")
    assert re.search("model.max.length", result.output)


def test_br13_validation_without_tokens(mb, tmp_path, project):
    data = chats(tmp_path / "data", [models.SAMPLE_A])
    chats(data, [LONG], split="valid")
    run = train(mb, data, project, model_max_length=40, valid_split="valid", lr=0).ok()
    assert all(record.get("eval_loss") is None for record in run.evals)
    assert re.search(r"no (trained )?tokens?", run.output, re.IGNORECASE)


@pytest.mark.parametrize("template,bos", [(C0, False), (C0B, True)])
@pytest.mark.parametrize("post_processor", [False, True])
def test_br26_chat_rows_get_no_second_bos(tmp_path, template, bos, post_processor):
    model = models.write_m0(tmp_path / "model", template=template, bos_post_processor=post_processor)
    messages = exchange("hi", "yo")
    (row,) = tokenize(model, [{"messages": messages}], tmp_path)
    assert (row["ids"], row["trained"]) == chat_ids(messages, bos)


@pytest.mark.parametrize("post_processor", [False, True])
@pytest.mark.parametrize("text", ["ab", "<s>ab"])
def test_br26_plain_rows_get_exactly_one_bos(tmp_path, post_processor, text):
    model = models.write_m0(tmp_path / "model", bos_post_processor=post_processor)
    (row,) = tokenize(model, [{"text": text}], tmp_path)
    assert (row["ids"], row["trained"]) == text_ids("ab")
    assert row["ids"].count(BOS) == 1


def test_generation_tags_say_what_is_trained(tmp_path):
    model = models.write_m0(tmp_path / "model", template=tokenizers.C0G)
    messages = exchange("hi", "yo") + exchange("more", "fine")
    (row,) = tokenize(model, [{"messages": messages}], tmp_path)
    assert (row["ids"], row["trained"]) == chat_ids(messages)


def test_system_message_that_the_template_refuses_moves_to_the_user(tmp_path, project):
    model = models.write_m0(tmp_path / "model", template=tokenizers.CG)
    messages = [{"role": "system", "content": "be brief"}, *exchange("hi", "yo")]
    (row,) = tokenize(model, [{"messages": messages}], tmp_path)
    assert "be brief" in row["text"] and "system" not in row["text"]
    assert row["text"].endswith("<|im_start|>model\nyo<|im_end|>\n")
    assert bytes(i for i, flag in zip(row["ids"], row["trained"]) if flag and i < 256) == b"yo"


def test_row_that_the_template_refuses_names_the_row(tmp_path, project):
    model = models.write_m0(tmp_path / "model", template=tokenizers.CG)
    data = chats(tmp_path / "data", [exchange("hi", "yo"), exchange("hi", "yo")[::-1]])
    train(model, data, project).refused("train.jsonl", "2", "alternate")


def test_response_only_loss_off_trains_every_token_but_the_first(mb, tmp_path, project):
    data = chats(tmp_path / "data", [models.SAMPLE_A])
    run = train(mb, data, project, response_only_loss=False, lr=0).ok()
    assert run.column("num_trained_tokens") == [len(chat_ids(models.SAMPLE_A)[0]) - 1]
