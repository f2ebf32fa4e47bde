"""BR-01: the named column is not there. The answer comes before any rank or model, and names what is there."""
import time

import pytest

from fixtures.data import chats, exchange, write_csv, write_jsonl
from fixtures.runner import train

ROWS = [["one", "1"], ["two", "2"], ["three", "3"]]


def refused_quickly(m0, data, project, *words, **options):
    begin = time.monotonic()
    result = train(m0, data, project, **options).refused(*words)
    assert time.monotonic() - begin < 10
    return result


def test_br01_other_case(m0, tmp_path, project):
    data = write_csv(tmp_path / "data", ["Text", "label"], ROWS)
    result = refused_quickly(m0, data, project, "train.csv", "'text'", "label", "did you mean", text_column="text")
    assert "Text" in result.output


def test_br01_blank_in_header(m0, tmp_path, project):
    data = write_csv(tmp_path / "data", [" text", "label"], ROWS)
    result = refused_quickly(m0, data, project, "train.csv", "did you mean", text_column="text")
    assert "' text'" in result.output or "` text`" in result.output


def test_br01_messages_under_another_name(m0, tmp_path, project):
    data = chats(tmp_path / "data", [exchange("q", "a")] * 3, column="conversations")
    refused_quickly(m0, data, project, "train.jsonl", "messages", "conversations", text_column="messages")


def test_br01_validation_split_too(m0, tmp_path, project):
    data = write_csv(tmp_path / "data", ["text"], [["one"]])
    write_csv(data, ["body"], [["one"]], split="valid")
    refused_quickly(m0, data, project, "valid.csv", "body", text_column="text", valid_split="valid")


def test_br01_sft_needs_no_dpo_columns(m0, tmp_path, project):
    data = write_csv(tmp_path / "data", ["text", "label"], ROWS)
    assert train(m0, data, project, text_column="text").ok().steps


def test_br01_dpo_with_two_columns(m0, tmp_path, project):
    data = write_jsonl(tmp_path / "data", [{"prompt": "q", "chosen": "a"}] * 3)
    refused_quickly(m0, data, project, "dpo", trainer="dpo")


@pytest.mark.parametrize("split", ["train", "valid"])
def test_missing_split_names_what_was_looked_for(m0, tmp_path, project, split):
    there = "other" if split == "train" else "train"
    data = write_csv(tmp_path / "data", ["text"], [["one"]], split=there)
    options = {} if split == "train" else {"valid_split": "valid"}
    refused_quickly(m0, data, project, str(data / f"{split}.csv"), str(data / f"{split}.jsonl"), **options)


@pytest.mark.parametrize("rows", [[], [""]], ids=["empty file", "empty text"])
def test_nothing_to_train_is_refused(m0, tmp_path, project, rows):
    data = write_jsonl(tmp_path / "data", [{"text": text} for text in rows])
    refused_quickly(m0, data, project, "train.jsonl", add_eos_token=False)
