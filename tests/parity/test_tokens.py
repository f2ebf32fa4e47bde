"""Token ids and rendered conversations against transformers and tokenizers."""
import random

import pytest
from transformers import AutoTokenizer

from fixtures import models, smollm2 as smollm, tokenizers
from fixtures.runner import train
from fixtures.data import chats
from fixtures.tools import tokenize

PIECES = [
    "the quick brown fox", " ", "  ", "\n", "\n\n", "\t", "12", "2024", "3.14159", "1,000,000", "don't", "we'll've", "I'M",
    "snake_case", "camelCase", "x = y + 1;", "{\"key\": [1, 2]}", "https://example.org/a?b=c#d", "caf\u00e9", "cafe\u0301",
    "na\u00efve", "\u00fcber", "\u4f60\u597d", "\u3053\u3093\u306b\u3061\u306f", "\uc548\ub155", "\u043f\u0440\u0438\u0432\u0435\u0442",
    "\u0645\u0631\u062d\u0628\u0627", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u00bd", "\u0664\u0662", "\u2168",
    "...", "!?", "--", "\u2014", "\u201cquoted\u201d", "\u00a0", "\u3000", "\u200b", "a\u0000b", "<|im_start|>", "<|im_end|>", "<|endoftext|>",
    "<|im_start", "\r\n", "   leading", "trailing   ", "UPPER", "MiXeD", "\\n", "\u20ac5", "50%", "C++", "a" * 50, "ab" * 30,
]


def varied_texts(count, seed=0):
    rng = random.Random(seed)
    return [rng.choice(["", " "]).join(rng.choices(PIECES, k=rng.randint(1, 12))) for _ in range(count)]


def varied_chats(count, seed=1):
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        messages = [{"role": "system", "content": " ".join(rng.choices(PIECES[:20], k=3))}] if rng.random() < 0.4 else []
        for _ in range(rng.randint(1, 4)):
            messages.append({"role": "user", "content": " ".join(rng.choices(PIECES, k=rng.randint(1, 6)))})
            messages.append({"role": "assistant", "content": " ".join(rng.choices(PIECES, k=rng.randint(1, 6)))})
        rows.append(messages)
    return rows


def inner(ids, text, tokenizer):
    """Ids of the text alone: a plain row gets one bos unless it begins with it, and one eos."""
    assert ids[0] == tokenizer.bos_token_id, "a plain row begins with bos"
    ids = ids if text.startswith(tokenizer.bos_token) else ids[1:]
    ends = ids and ids[-1] == tokenizer.eos_token_id and not text.endswith(tokenizer.eos_token)
    return ids[:-1] if ends else ids


def check_texts(model, tokenizer, tmp_path):
    texts = varied_texts(200)
    assert len(set(texts)) > 190
    rows = tokenize(model, [{"text": text} for text in texts], tmp_path)
    wrong = []
    for text, row in zip(texts, rows, strict=True):
        expected = tokenizer(text, add_special_tokens=False)["input_ids"]
        if inner(row["ids"], text, tokenizer) != expected:
            wrong.append((text, row["ids"], expected))
    assert not wrong, wrong[:3]


def test_smollm2_texts(smollm2, tmp_path):
    check_texts(smollm2, smollm.load_tokenizer(smollm2), tmp_path)


def test_t0_texts(m0, tmp_path):
    check_texts(m0, AutoTokenizer.from_pretrained(m0), tmp_path)


def check_chats(model, tokenizer, tmp_path, row_of):
    conversations = varied_chats(20)
    for messages in conversations:
        for message in messages:
            message["content"] = message["content"].replace("<|im_start|>", "").replace("<|im_end|>", "")
    rows = tokenize(model, [{"messages": m} for m in conversations], tmp_path)
    for messages, row in zip(conversations, rows, strict=True):
        assert row["text"] == tokenizer.apply_chat_template(messages, tokenize=False)
        ids, trained = row_of(tokenizer, messages)
        assert row["ids"] == list(ids)
        assert row["trained"] == list(trained)


def test_smollm2_conversations(smollm2, tmp_path):
    check_chats(smollm2, smollm.load_tokenizer(smollm2), tmp_path, smollm.chat_row)


@pytest.mark.parametrize("name", ["C0", "C0B", "C0G"])
def test_t0_conversations(tmp_path, name):
    model = models.write_m0(tmp_path / "model", template=getattr(tokenizers, name))

    def by_hand(_, messages):
        return tokenizers.chat_ids(messages, bos=name == "C0B")
    check_chats(model, AutoTokenizer.from_pretrained(model), tmp_path, by_hand)


def test_the_saved_smollm2_tokenizer_is_the_same(smollm2, tmp_path, project):
    """From GGUF to tokenizer.json: what a run saves, transformers reads to the same ids and the same template."""
    data = chats(tmp_path / "data", [[{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]])
    train(smollm2, data, project, "--peft", lr=0, merge_adapter=False).ok()
    ours, theirs = AutoTokenizer.from_pretrained(project), smollm.load_tokenizer(smollm2)
    for text in varied_texts(200):
        assert ours(text, add_special_tokens=False)["input_ids"] == theirs(text, add_special_tokens=False)["input_ids"]
    for messages in varied_chats(20):
        assert ours.apply_chat_template(messages, tokenize=False) == theirs.apply_chat_template(messages, tokenize=False)
    assert (ours.bos_token, ours.eos_token) == (theirs.bos_token, theirs.eos_token)
