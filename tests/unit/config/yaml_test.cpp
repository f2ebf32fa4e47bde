#include "config_test_support.h"

namespace aitraining::config {
namespace {

using Yaml = ConfigTest;

constexpr const char* kDocument =
    "task: llm-sft\nbackend: local\nbase_model: meta-llama/Llama-3.2-3B\nproject_name: "
    "distributed-model\n\n"
    "data:\n  path: ./data\n  train_split: train\n  valid_split: null\n  chat_template: tokenizer\n"
    "  column_mapping:\n    text_column: text\n\nlog: wandb\n\nparams:\n"
    "  distributed_backend: ddp  # or null for DDP\n  epochs: 3\n  batch_size: 2\n  "
    "gradient_accumulation: 4\n"
    "  mixed_precision: bf16\n  peft: true\n  lora_r: 16\n";

TEST_F(Yaml, TheDocumentsFile) {
  const std::string path = write(kDocument);
  const ResolvedConfig config = resolved({"--config", path});
  const TrainingParams& p = config.params;
  EXPECT_EQ(p.model, "meta-llama/Llama-3.2-3B");
  EXPECT_EQ(p.project_name, (std::filesystem::current_path() / "distributed-model").string());
  EXPECT_EQ(p.data_path, "./data");
  EXPECT_EQ(p.train_split, "train");
  EXPECT_EQ(p.valid_split, std::nullopt);
  EXPECT_EQ(p.chat_template, "tokenizer");
  EXPECT_EQ(p.text_column, "text");
  EXPECT_EQ(p.log, "wandb");
  EXPECT_EQ(p.trainer, "sft");
  EXPECT_EQ(p.distributed_backend, "ddp");
  EXPECT_EQ(p.epochs, 3);
  EXPECT_EQ(p.batch_size, 2);
  EXPECT_EQ(p.gradient_accumulation, 4);
  EXPECT_EQ(p.mixed_precision, "bf16");
  EXPECT_TRUE(p.peft);
  EXPECT_EQ(p.lora_r, 16);
  EXPECT_EQ(config.origins.at("epochs"), Origin::file);
  EXPECT_EQ(to_json(params_of({"llm", "--config", path})), to_json(p));
}

TEST_F(Yaml, FileAndFlagsGiveTheSameParams) {
  std::string text = kDocument;
  text.replace(text.find("ddp  #"), 3, "null");
  const auto from_file = to_json(params_of({"--config", write(text)}));
  const auto from_flags = to_json(params_of(
      {"llm", "--train", "--model", "meta-llama/Llama-3.2-3B", "--project-name",
       "distributed-model", "--data-path", "./data", "--trainer", "sft", "--chat-template",
       "tokenizer", "--epochs", "3", "--mixed-precision", "bf16", "--peft"}));
  EXPECT_EQ(from_file, from_flags);
}

TEST_F(Yaml, FlagsWinOverTheFile) {
  const ResolvedConfig config = resolved({"llm", "--config", write(kDocument), "--lr", "0.5",
                                          "--epochs", "7", "--peft=false", "--trainer", "default"});
  EXPECT_EQ(config.params.lr, 0.5);
  EXPECT_EQ(config.params.epochs, 7);
  EXPECT_FALSE(config.params.peft);
  EXPECT_EQ(config.params.trainer, "default");
  EXPECT_EQ(config.origins.at("epochs"), Origin::flag);
  EXPECT_EQ(config.origins.at("batch_size"), Origin::file);
}

TEST_F(Yaml, SevenWaysToWriteTwoTimesTenToTheMinusFive) {
  for (const char* form : {"2e-5", "2E-5", "2e-05", "2.0e-5", ".00002", "0.00002", "\"2e-5\""}) {
    const TrainingParams p =
        params_of({"--config", write_params(std::string("  lr: ") + form + "\n")});
    EXPECT_EQ(p.lr, 2e-5) << form;
    EXPECT_EQ(to_json(p)["lr"].dump(), "2e-05") << form;
  }
}

// YAML would let the text go on over the keys below.
TEST_F(Yaml, AQuoteThatIsNotClosedIsAnError) {
  for (const char* open : {"\"constant", "'constant", "\"const\\\"ant"}) {
    EXPECT_HAS(refusal({"--config", write_params(std::string("  scheduler: ") + open + "\n  epochs: 5\n")}),
               "run.yaml:11:14: not readable as YAML: this quote is not closed on its line");
  }
  const TrainingParams closed = params_of({"--config", write_params("  scheduler: 'constant' # it's\n  epochs: 5\n")});
  EXPECT_EQ(closed.scheduler, "constant");
  EXPECT_EQ(closed.epochs, 5);
  // Inside a block of text such a line is text.
  const TrainingParams block =
      params_of({"--config", write_params("  target_modules: |\n    q_proj\n  epochs: 5\n")});
  EXPECT_EQ(block.epochs, 5);
}

TEST_F(Yaml, BadNumbersNameKeyValueAndLine) {
  EXPECT_HAS(refusal({"--config", write_params("  lr: 2e-5x\n")}),
             "run.yaml:11:7: params.lr: '2e-5x' is not a number");
  EXPECT_HAS(refusal({"--config", write_params("  lr: 2,0e-5\n")}),
             "run.yaml:11:7: params.lr: '2,0e-5' is not a number");
  EXPECT_HAS(refusal({"--config", write_params("  epochs: 2\n  lr:\n")}),
             "run.yaml:12:3: params.lr: has no value; a number is due");
  EXPECT_HAS(refusal({"--config", write_params("  batch_size: 2.5\n")}),
             "run.yaml:11:15: params.batch_size: '2.5' is not a whole number");
  EXPECT_HAS(refusal({"--config", write_params("  batch_size: [2, 4]\n")}),
             "params.batch_size: a whole number is due, found a list");
  EXPECT_HAS(refusal({"--config", write_params("  lr: {a: 1}\n")}),
             "params.lr: a number is due, found a map");
  const TrainingParams p =
      params_of({"--config", write_params("  lr: 1\n  warmup_ratio: 0\n  epochs: \"2\"\n")});
  EXPECT_EQ(p.lr, 1.0);
  EXPECT_EQ(p.warmup_ratio, 0.0);
  EXPECT_EQ(p.epochs, 2);
}

TEST_F(Yaml, Booleans) {
  for (const char* word : {"true", "True", "yes", "on", "\"true\""}) {
    EXPECT_TRUE(params_of({"--config", write_params(std::string("  peft: ") + word + "\n")}).peft)
        << word;
  }
  for (const char* word : {"false", "No", "OFF"}) {
    EXPECT_FALSE(
        params_of({"--config", write_params(std::string("  merge_adapter: ") + word + "\n")})
            .merge_adapter)
        << word;
  }
  EXPECT_HAS(refusal({"--config", write_params("  peft: 1\n")}),
             "params.peft: '1' is not true or false");
  EXPECT_EQ(params_of({"--config", write_params("  eval_strategy: no\n")}).eval_strategy, "no");
}

TEST_F(Yaml, NullForms) {
  for (const char* word : {"null", "~", "", "None", "none"}) {
    const TrainingParams p =
        params_of({"--config", write_params(std::string("  distributed_backend: ") + word +
                                            "\n  chat_template: " + word + "\n")});
    EXPECT_EQ(p.distributed_backend, std::nullopt) << word;
    EXPECT_EQ(p.chat_template, "none") << word;
  }
  EXPECT_EQ(params_of({"--config", write_params("  lr: 1\n")}).chat_template, std::nullopt);
  EXPECT_HAS(refusal({"--config", write_params("  trainer: null\n")}),
             "params.trainer: has no value; a text is due");
}

TEST_F(Yaml, UnknownAndMisplacedKeysNameTheirPlace) {
  const std::string path = write(
      "task: llm-sft\nbackend: local\nbase_model: m\nproject_name: p\nlr: 1e-3\nmodel: x\nlogg: "
      "none\n"
      "data:\n  path: d\n  train: train\n  text_column: text\n"
      "params:\n  learnign_rate: 1e-3\n  batch-size: 2\n  use_sweep: true\n  path: d\n  "
      "qwertzuiop: "
      "1\nsweep: {}\n");
  const std::string message = refusal({"--config", path});
  EXPECT_HAS(message, "run.yaml:5:1: unknown key 'lr' at top level: it belongs under params");
  EXPECT_HAS(message, "run.yaml:6:1: unknown key 'model' at top level: it belongs under params");
  EXPECT_HAS(message, "run.yaml:7:1: unknown key 'logg' at top level; did you mean 'log'?");
  EXPECT_HAS(message, "run.yaml:10:3: unknown key 'train' under data");
  EXPECT_HAS(
      message,
      "run.yaml:11:3: unknown key 'text_column' under data: it belongs under data.column_mapping");
  EXPECT_HAS(
      message,
      "run.yaml:13:3: unknown key 'learnign_rate' under params; did you mean 'lr' under params?");
  EXPECT_HAS(message,
             "run.yaml:14:3: unknown key 'batch-size' under params; did you mean 'batch_size'?");
  EXPECT_HAS(message,
             "run.yaml:15:14: params.use_sweep: not supported yet in this build: use_sweep");
  EXPECT_HAS(message, "run.yaml:16:3: unknown key 'path' under params: it belongs under data");
  EXPECT_HAS(message,
             "run.yaml:17:3: unknown key 'qwertzuiop' under params; docs/parameters.md lists all");
  EXPECT_HAS(message, "run.yaml:18:1: not supported yet in this build: sweep");
  EXPECT_HAS(message, "11 problems:");
}

TEST_F(Yaml, DoubledKeysNameBothLines) {
  EXPECT_HAS(refusal({"--config", write_params("  lr: 1e-3\n  epochs: 1\n  lr: 1e-4\n")}),
             "run.yaml:13:3: 'params.lr' is given twice: lines 11 and 13");
  EXPECT_HAS(refusal({"--config", write_params("  lr: 1e-3\nlog: none\n")}),
             "run.yaml:12:1: 'log' is given twice: lines 9 and 12");
  EXPECT_HAS(refusal({"--config", write_params("  data_path: x\n")}),
             "run.yaml:11:3: params.data_path is given twice: also at");
}

TEST_F(Yaml, FilesThatAreNoConfiguration) {
  EXPECT_HAS(refusal({"--config", write("- a\n- b\n")}),
             "run.yaml:1:1: the file must be a map of keys");
  EXPECT_HAS(refusal({"--config", write("just text\n")}), "found a single value");
  EXPECT_HAS(refusal({"--config", write("")}), "the configuration file is empty");
  EXPECT_HAS(refusal({"--config", write("a: 1\n---\nb: 2\n")}), "holds 2 documents");
  EXPECT_HAS(refusal({"--config", write("task: llm\nparams:\n\tlr: 1\n")}),
             "run.yaml:3:1: not readable as YAML: a tab");
  EXPECT_HAS(refusal({"--config", write("task: llm\nparams:\n  \tlr: 1\n")}),
             "run.yaml:3:3: not readable as YAML: a tab");
  EXPECT_HAS(refusal({"--config", write("task: [llm\n")}), "not readable as YAML");
  EXPECT_HAS(refusal({"--config", (folder_ / "none.yaml").string()}),
             "none.yaml: No such file or directory");
}

TEST_F(Yaml, SectionsMustBeMaps) {
  EXPECT_HAS(
      refusal({"--config", write("task: llm\nbackend: local\nbase_model: m\nproject_name: p\n"
                                 "data:\n  - path: d\nparams: 3\n")}),
      "run.yaml:5:1: data: a map of keys is due, found a list");
  EXPECT_EQ(params_of({"--config", write_params("")}).trainer, "sft");
}

TEST_F(Yaml, TaskAndBackend) {
  const auto with_head = [&](const std::string& head) {
    return std::vector<std::string>{
        "--config", write(head + "base_model: m\nproject_name: p\ndata: {path: d}\n")};
  };
  const std::string neither = refusal(with_head(""));
  EXPECT_HAS(neither, "Task is required in the configuration file");
  EXPECT_HAS(neither, "Backend is required in the configuration file");
  EXPECT_HAS(refusal(with_head("task: text-classification\nbackend: local\n")),
             "run.yaml:1:7: Task `text-classification` is not supported");
  EXPECT_HAS(refusal(with_head("task: llm-ppo\nbackend: local\n")),
             "Invalid LLM training task: Task `llm-ppo` is not supported");
  EXPECT_HAS(refusal(with_head("task: llm-dpo\nbackend: local\n")),
             "run.yaml:1:7: task: not supported yet in this build: trainer dpo");
  EXPECT_HAS(refusal(with_head("task: llm\nbackend: spaces-a10\n")),
             "run.yaml:2:10: Invalid backend: spaces-a10");
  EXPECT_EQ(params_of(with_head("task: llm\nbackend: local\n")).trainer, "default");
  EXPECT_EQ(params_of(with_head("task: llm-generic\nbackend: local\n")).trainer, "default");
  EXPECT_EQ(params_of({"--config", write_params("  trainer: default\n")}).trainer, "default");
  EXPECT_HAS(refusal(llm({"--backend", "ngc"})), "Invalid backend: ngc");
}

TEST_F(Yaml, MissingValuesMayComeFromFlags) {
  const std::string path = write("task: llm\nbackend: local\n");
  EXPECT_HAS(refusal({"--config", path}), "Model must be specified");
  EXPECT_EQ(params_of({"--config", path, "--model", "m", "--data-path", "d", "--project-name", "p"})
                .model,
            "m");
}

TEST_F(Yaml, TargetModulesMayBeAList) {
  EXPECT_EQ(
      params_of({"--config", write_params("  peft: true\n  target_modules: [q_proj, v_proj]\n")})
          .target_modules,
      "q_proj,v_proj");
}

TEST_F(Yaml, HubTakesReferencesToTheEnvironment) {
  setenv("AITRAINING_TEST_SECRET", "hf_REFERRED", 1);
  const std::string hub =
      "  lr: 1\nhub:\n  username: ${AITRAINING_TEST_SECRET}\n  token: ${AITRAINING_TEST_SECRET}\n  "
      "push_to_hub: false\n";
  const ResolvedConfig config = resolved({"--config", write_params(hub)});
  EXPECT_EQ(config.params.token, "hf_REFERRED");
  EXPECT_EQ(config.origins.at("token"), Origin::environment);
  EXPECT_FALSE(has(describe(config), "token = hf_REFERRED"));
  unsetenv("AITRAINING_TEST_SECRET");
  EXPECT_HAS(refusal({"--config", write_params(hub)}),
             "hub.token: the environment variable AITRAINING_TEST_SECRET is not set");
  EXPECT_HAS(refusal({"--config", write_params("  push_to_hub: true\n")}),
             "not supported yet in this build: push_to_hub");
}

TEST_F(Yaml, RangesAreReportedWithTheirLine) {
  EXPECT_HAS(refusal({"--config", write_params("  batch_size: 0\n  scheduler: cosin\n")}),
             "run.yaml:11:15: params.batch_size: 0 is out of range");
  EXPECT_HAS(refusal({"--config", write_params("  batch_size: 0\n  scheduler: cosin\n")}),
             "run.yaml:12:14: params.scheduler: 'cosin'");
}

TEST(Examples, ShippedConfigurationsAreAccepted) {
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(AITRAINING_SOURCE_DIR) / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_EQ(refusal({"--config", entry.path().string()}), "accepted") << entry.path();
  }
}

}  // namespace
}  // namespace aitraining::config
