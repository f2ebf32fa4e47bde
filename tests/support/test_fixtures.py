"""The fixtures themselves, checked with transformers: a wrong fixture would make every other test mean nothing."""
import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from fixtures import models, tokenizers
from fixtures.data import exchange


def loss_sum(model, ids, trained):
    logits = model(torch.tensor([ids])).logits[0].double()
    terms = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none")
    return float(sum(term for term, flag in zip(terms, trained[1:]) if flag)), sum(trained)


@pytest.fixture(scope="module")
def mb_model(mb):
    return AutoModelForCausalLM.from_pretrained(mb, dtype=torch.float32)


def test_mb_has_the_exact_losses(mb_model):
    with torch.no_grad():
        for sample, total, tokens, mean in ((models.SAMPLE_A, models.SUM_A, models.TOKENS_A, models.MEAN_A),
                                            (models.SAMPLE_B, models.SUM_B, models.TOKENS_B, models.MEAN_B)):
            value, count = loss_sum(mb_model, *tokenizers.chat_ids(sample))
            assert count == tokens
            assert value == pytest.approx(total, rel=1e-6)
            assert value / count == pytest.approx(mean, rel=1e-6)
    assert models.MEAN_AB == pytest.approx(3.540298, abs=1e-6)
    assert (models.MEAN_A + models.MEAN_B) / 2 == pytest.approx(4.546116, abs=1e-6)


def test_mb_loss_of_k_letters(mb_model):
    with torch.no_grad():
        for k in (1, 3, 40):
            value, count = loss_sum(mb_model, *tokenizers.chat_ids(exchange("q", "a" * k)))
            assert count == k + 1
            assert value == pytest.approx(models.LN_VOCAB + (k - 1) + 6.0308292, rel=1e-6)


@pytest.mark.parametrize("text", ["hi", "a\nb  c\t\u00e4\u4e2d\U0001f600", "<|im_start|>user\nhi<|im_end|>\n", ""])
def test_t0_is_one_byte_one_token(tmp_path, text):
    tokenizer = AutoTokenizer.from_pretrained(tokenizers.write_tokenizer(tmp_path))
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    plain = text
    for token in tokenizers.SPECIAL:
        plain = plain.replace(token, "\0")
    assert len(ids) == len(plain.encode())
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("template,bos", [(tokenizers.C0, False), (tokenizers.C0B, True), (tokenizers.C0G, False)])
def test_chat_templates_cost_what_they_should(tmp_path, template, bos):
    tokenizer = AutoTokenizer.from_pretrained(tokenizers.write_tokenizer(tmp_path, template=template))
    messages = exchange("hi", "yo")
    ids = tokenizer.apply_chat_template(messages, return_dict=True)["input_ids"]
    expected, trained = tokenizers.chat_ids(messages, bos)
    assert ids == expected
    assert len(ids) == 10 + 15 + bos and sum(trained) == 3
    if template == tokenizers.C0G:
        mask = tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
        assert mask["assistant_masks"] == trained


def test_gemma_like_template_refuses_what_it_should(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tokenizers.write_tokenizer(tmp_path, template=tokenizers.CG))
    text = tokenizer.apply_chat_template(exchange("hi", "yo"), tokenize=False)
    assert text == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>model\nyo<|im_end|>\n"
    for messages, reason in (([{"role": "system", "content": "s"}], "System role"),
                             ([{"role": "assistant", "content": "s"}], "alternate")):
        with pytest.raises(Exception, match=reason):
            tokenizer.apply_chat_template(messages, tokenize=False)


def test_bos_post_processor_adds_one_bos(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tokenizers.write_tokenizer(tmp_path, bos_post_processor=True))
    assert tokenizer("ab")["input_ids"] == [tokenizers.BOS, 97, 98]
    assert tokenizer("ab", add_special_tokens=False)["input_ids"] == [97, 98]


@pytest.mark.parametrize("kind", models.RANDOM_LLAMAS)
def test_random_llamas_load_whole(tmp_path, kind):
    folder = models.write_random_llama(tmp_path / kind, kind)
    model, report = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    config = json.loads((folder / "config.json").read_text())
    for name, shape in models.llama_shapes(config).items():
        assert list(model.state_dict()[name].shape) == shape
    assert torch.isfinite(model(torch.arange(50)[None]).logits).all()


def test_m0_is_small_and_fixed(tmp_path):
    first, second = models.write_m0(tmp_path / "1"), models.write_m0(tmp_path / "2")
    content = (first / "model.safetensors").read_bytes()
    assert content == (second / "model.safetensors").read_bytes()
    assert len(content) < 2**20
