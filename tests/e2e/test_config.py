"""Flags and YAML: BR-08 (numbers as text), precedence, unknown and doubled names, required ones, exit codes."""
import re
import shutil

import pytest

from fixtures import models
from fixtures.config_files import YAML
from fixtures.data import chats, exchange
from fixtures.runner import run, train


@pytest.fixture
def data(tmp_path):
    return chats(tmp_path / "data", [models.SAMPLE_A])


class Config:
    """A YAML file of known lines: `more` are put under params."""

    def __init__(self, folder, model, data, project):
        self.file, self.project = folder / "run.yaml", project
        self.text = YAML.format(model=model, project=project, data=data)

    def line_of(self, text):
        return 1 + self.file.read_text().splitlines().index(text)

    def run(self, *more, flags=(), edit=lambda text: text):
        self.file.write_text(edit(self.text + "".join(f"  {line}\n" for line in more)))
        return run("--config", self.file, *flags, project=self.project)


@pytest.fixture
def config(tmp_path, m0, data, project):
    return Config(tmp_path, m0, data, project)


@pytest.mark.parametrize("text", ["2e-5", "2E-5", "2e-05", "2.0e-5", ".00002", "0.00002", '"2e-5"'])
def test_br08_good_numbers(config, text):
    result = config.run(f"lr: {text}").ok()
    assert result.params["lr"] == 2e-05
    assert re.search(r'"lr": 2e-0?5\b', (config.project / "training_params.json").read_text())


@pytest.mark.parametrize("text", ["2e-5x", "2,0e-5", ""])
def test_br08_bad_numbers(config, text):
    line = f"lr: {text}"
    result = config.run(line).refused("lr", text, str(config.line_of(f"  {line}")))
    assert "run.yaml" in result.output


def test_br08_whole_numbers_where_fractions_are_due(config):
    params = config.run("lr: 1", "warmup_ratio: 0").ok().params
    assert params["lr"] == 1.0 and params["warmup_ratio"] == 0.0 and params["epochs"] == 1


@pytest.mark.parametrize("line,key", [("batch_size: 2.5", "batch_size"), ("batch_size: two", "batch_size"),
                                      ("peft: maybe", "peft"), ("lr: [1, 2]", "lr"), ("batch_size: 0", "batch_size"),
                                      ("batch_size: 99999999999999999999", "batch_size")])
def test_wrong_types_and_ranges(config, line, key):
    config.run(line).refused(key)


def test_br38_unknown_key_and_its_nearest(config):
    config.run("learnign_rate: 1e-3").refused("learnign_rate")
    config.run("bacth_size: 1").refused("bacth_size", "batch_size")


def test_br38_key_in_the_wrong_section(config):
    config.run(edit=lambda text: text + "lr: 1e-3\n").refused("lr", "params")


def test_br38_doubled_key_names_both_lines(config):
    result = config.run("lr: 1e-3", "lr: 2e-3")
    lines = config.file.read_text().splitlines()
    result.refused("lr", str(lines.index("  lr: 1e-3") + 1), str(lines.index("  lr: 2e-3") + 1))


def test_br38_every_offender_is_listed(config):
    config.run("bacth_size: 1", "epochz: 2", "lr: fast").refused("bacth_size", "epochz", "lr")


@pytest.mark.parametrize("edit", [lambda text: text.replace("  epochs", "\tepochs"), lambda text: "- a\n- b\n",
                                  lambda text: text + "  bad: [1, 2\n", lambda text: ""])
def test_br38_files_that_are_no_configuration(config, edit):
    config.run(edit=edit).refused("run.yaml")


@pytest.mark.parametrize("key", ["task", "backend", "base_model", "project_name"])
def test_required_keys(config, key):
    config.run(edit=lambda text: re.sub(rf"(?m)^{key}:.*\n", "", text)).refused(key.replace("_", " ").split()[0])


def test_missing_file(tmp_path):
    run("--config", tmp_path / "none.yaml").refused("none.yaml")


def test_default_file_flag(config):
    """The flag wins over the file, the file over the default."""
    params = config.run("lr: 1e-3", "lora_r: 8", flags=("--lr", "2e-3")).ok().params
    assert (params["lr"], params["lora_r"], params["lora_alpha"]) == (2e-3, 8, 32)


def test_file_and_flags_mean_the_same(config, m0, data, tmp_path):
    by_file = config.run("lr: 1e-3", "batch_size: 1", "gradient_accumulation: 2", "logging_steps: 1").ok()
    by_flags = train(m0, data, tmp_path / "flags", lr=1e-3, batch_size=1, gradient_accumulation=2, text_column="messages",
                     chat_template="tokenizer").ok()
    first, second = by_file.params, by_flags.params
    different = {key for key in first if first[key] != second.get(key)}
    assert different <= {"project_name"} and first.keys() == second.keys()
    assert by_file.losses == by_flags.losses


@pytest.mark.parametrize("words,said", [
    (("--learning-rat", "1e-3"), ("--learning-rat",)),
    (("--bach-size", "2"), ("--bach-size", "--batch-size")),
    (("--batch-size", "two"), ("batch-size",)),
    (("--batch-size", "0"), ("batch",)),
    (("--batch-size",), ("batch-size",)),
    (("--lr", "-1"), ("lr",)),
    (("--trainer", "sfx"), ("sfx", "sft", "dpo")),
    (("--distributed-backend", "fsdp"), ("Unsupported distributed backend", "fsdp", "ddp", "deepspeed", "zero2")),
    (("--mixed-precision", "fp17"), ("fp17", "bf16")),
    (("--scheduler", "lineal"), ("lineal", "linear")),
    (("--optimizer", "adamv"), ("adamv", "adamw_torch")),
    (("--save-strategy", "sometimes"), ("sometimes", "epoch", "steps")),
    (("--lora-r", "0", "--peft"), ("lora",)),
    (("--quantization", "int4"), ("quantization", "peft")),
    (("--resume-from-checkpoint",), ("resume",)),
    (("stray",), ("stray",)),
])
def test_bad_flags(m0, data, project, words, said):
    result = train(m0, data, project, *words).refused(*said)
    assert not project.exists() or not list(project.glob("*.safetensors"))
    assert len(result.output.splitlines()) < 40


def test_a_flag_given_twice(m0, data, project):
    train(m0, data, project, "--lora-r", "4", "--lora-r", "6").refused("--lora-r", "2 times")


@pytest.mark.parametrize("missing,said", [("--model", "model"), ("--data-path", "data"), ("--project-name", "project")])
def test_required_flags(m0, data, project, missing, said):
    values = {"--model": m0, "--data-path": data, "--project-name": project}
    del values[missing]
    words = [word for pair in values.items() for word in pair]
    run("llm", "--train", "--trainer", "sft", *words, project=project).refused(said)


@pytest.mark.parametrize("spelling", [("--batch-size", "3"), ("--batch_size", "3"), ("--batch-size=3",)])
def test_spellings(m0, data, project, spelling):
    assert train(m0, data, project, *spelling).ok().params["batch_size"] == 3


def test_saved_parameters(m0, data, project):
    params = train(m0, data, project, lr=1e-3, epochs=2).ok().params
    assert params["model"] == str(m0) and params["data_path"] == str(data)
    assert params["project_name"] == str(project) and params["trainer"] == "sft"
    assert (params["lr"], params["epochs"], params["seed"]) == (1e-3, 2, 42)
    text = (project / "training_params.json").read_text()
    assert text.startswith('{\n    "')


def test_help_and_version_answer_at_once():
    for words in (("--help",), ("llm", "--help"), ("--version",)):
        result = run(*words, timeout=5)
        assert result.code == 0 and result.stdout
    assert "--distributed-backend" in run("llm", "--help").stdout
    assert re.search(r"\d+\.\d+", run("--version").stdout)


def test_no_model_there(data, project, tmp_path):
    train(tmp_path / "nothing", data, project).refused("nothing")


def test_no_data_there(m0, project, tmp_path):
    train(m0, tmp_path / "nothing", project).refused(str(tmp_path / "nothing" / "train.csv"))


@pytest.mark.parametrize("words", [("--quantization", "int4", "--peft"), ("--quantization", "int8", "--peft"),
                                   ("--mixed-precision", "fp16")])
def test_br15_what_this_machine_cannot_do(m0, data, project, words):
    """A real path, or an error before work that says what was asked and what to change."""
    result = train(m0, data, project, *words, device="cpu")
    if result.code != 0:
        result.refused(words[1])


@pytest.mark.parametrize("same", ["model", "data"])
def test_project_folder_is_not_one_that_the_run_reads(m0, tmp_path, same):
    model, data = tmp_path / "model", chats(tmp_path / "data", [exchange("hi", "yo")])
    shutil.copytree(m0, model)
    before = (model / "model.safetensors").read_bytes()
    result = run("llm", "--train", "--trainer", "sft", "--model", model, "--data-path", data, "--log", "none",
                 "--project-name", f"{tmp_path}/other/../{same}")
    assert result.code == 2 and "overwritten" in result.output
    assert (model / "model.safetensors").read_bytes() == before and len(list(data.iterdir())) == 1
