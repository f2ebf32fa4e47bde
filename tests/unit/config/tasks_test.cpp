// Names of tasks and trainers, what each needs, and what this build says about them.
#include "config_test_support.h"
#include "task.h"

namespace aitraining::config {
namespace {

using Tasks = ConfigTest;

std::vector<std::string> with(const std::string& command, std::vector<std::string> more) {
  std::vector<std::string> all = llm(std::move(more));
  all[0] = command;
  return all;
}

TEST_F(Tasks, NamesOnTheCommandLine) {
  for (const char* word : {"llm-sft", "llm:sft"}) {
    EXPECT_EQ(params_of(with(word, {})).trainer, "sft") << word;
    EXPECT_EQ(params_of(with(word, {"--trainer", "default"})).trainer, "default") << word;
  }
  EXPECT_EQ(params_of(with("llm-generic", {})).trainer, "default");
  EXPECT_EQ(resolved(with("llm-sft", {})).origins.at("trainer"), Origin::flag);
  EXPECT_HAS(refusal(with("llm-dpo", {})), "llm-dpo: not supported yet in this build: trainer dpo");
  EXPECT_HAS(refusal(with("llm-grpo", {})), "write task: llm and params.trainer: grpo");
  EXPECT_HAS(refusal(with("llm-stf", {})), "did you mean 'llm-sft'?");
  EXPECT_HAS(refusal(with("vlm:caption", {})), "Task `vlm:caption` is not supported");
  EXPECT_HAS(refusal({"seq2sqe"}), "unknown command 'seq2sqe'; did you mean 'seq2seq'?");
}

TEST_F(Tasks, EveryNameIsUnderstoodInTheFile) {
  for (const std::string& word : task_words()) {
    const std::string message = refusal({"--config", write("task: " + word +
                                                           "\nbackend: local\nbase_model: m\n"
                                                           "project_name: p\ndata: {path: d}\n")});
    EXPECT_FALSE(has(message, "Task `")) << message;
    if (find_task(word)->task == Task::llm) continue;
    EXPECT_HAS(message, "run.yaml:1:7: not supported yet in this build: task ");
  }
}

TEST_F(Tasks, FileAndCommandMustNotContradict) {
  const std::string file = write(
      "task: seq2seq\nbackend: local\nbase_model: m\nproject_name: p\n"
      "data: {path: d}\n");
  EXPECT_HAS(refusal({"llm", "--config", file}),
             "run.yaml:1:7: seq2seq contradicts the command llm");
  EXPECT_FALSE(has(refusal({"seq2seq", "--config", file}), "contradicts"));
}

TEST_F(Tasks, OthersHaveTheirOwnParametersAndDefaults) {
  const std::string file = write(
      "task: seq2seq\nbackend: local\nbase_model: m\nproject_name: p\ndata:\n  path: d\n"
      "  column_mapping:\n    target_column: y\nparams:\n  max_target_length: 0\n  packing: true\n"
      "  trainer: sft\n");
  const std::string message = refusal({"--config", file, "--early-stopping-patience", "0"});
  EXPECT_HAS(message, "run.yaml:10:22: params.max_target_length: 0 is out of range");
  EXPECT_HAS(message, "unknown key 'packing' under params (a parameter of llm)");
  EXPECT_HAS(message, "unknown key 'trainer' under params (a parameter of llm)");
  EXPECT_HAS(message, "--early-stopping-patience: 0 is out of range");
  EXPECT_FALSE(has(message, "target_column"));
  const TrainingParams text = from_json(nlohmann::ordered_json::object(), "j", Task::seq2seq);
  EXPECT_EQ(text.lr, 5e-5);
  EXPECT_EQ(text.epochs, 3);
  EXPECT_EQ(text.gradient_accumulation, 1);
  const TrainingParams image = from_json(nlohmann::ordered_json::object(), "j", Task::vlm);
  EXPECT_EQ(image.trainer, "vqa");
  EXPECT_EQ(image.image_column, "image");
  EXPECT_EQ(image.gradient_accumulation, 4);
  EXPECT_EQ(from_json(to_json(image, Task::vlm), "j", Task::vlm).prompt_text_column, "prompt");
  EXPECT_HAS(refusal(with("seq2seq", {"--quantization", "int4"})),
             "int4 quantization is not supported");
  EXPECT_HAS(refusal(with("vlm", {"--trainer", "sft"})), "trainer `sft` not supported");
  EXPECT_HAS(refusal(with("seq2seq", {"--distributed-backend", "ddp"})),
             "unrecognized arguments: --distributed-backend (a parameter of llm)");
}

TEST_F(Tasks, WhatThisBuildCannotDoComesLast) {
  const std::string message = refusal(
      with("llm-dpo", {"--lr", "fast", "--use-sweep", "--epochs", "0", "--learning-rat", "1"}));
  const std::vector<std::string> order{"unrecognized arguments: --learning-rat",
                                       "--lr: 'fast' is not a number",
                                       "--epochs: 0 is out of range",
                                       "DPO training requires prompt_text_column",
                                       "--use-sweep: not supported yet",
                                       "llm-dpo: not supported yet in this build: trainer dpo"};
  size_t last = 0;
  for (const std::string& part : order) {
    const size_t at = message.find(part);
    ASSERT_NE(at, std::string::npos) << part << "\n" << message;
    EXPECT_GT(at, last) << part;
    last = at;
  }
  const std::string other = refusal(with("seq2seq", {"--lr", "fast", "--auto-find-batch-size"}));
  EXPECT_LT(other.find("--lr: 'fast'"), other.find("--auto-find-batch-size: not supported yet"));
  EXPECT_LT(other.find("--auto-find-batch-size"), other.find("seq2seq: not supported yet"));
}

TEST_F(Tasks, WhatATrainerNeeds) {
  const auto of = [](std::vector<std::string> more) { return refusal(llm(std::move(more))); };
  for (const char* trainer : {"dpo", "orpo"}) {
    const std::string message = of({"--trainer", trainer});
    EXPECT_HAS(message, "training requires prompt_text_column to be specified");
    EXPECT_HAS(message, "training requires rejected_text_column to be specified");
    EXPECT_FALSE(
        has(of({"--trainer", trainer, "--prompt-text-column", "p", "--rejected-text-column", "r"}),
            "requires"));
  }
  EXPECT_HAS(of({"--trainer", "ppo"}), "PPO training requires a reward model!");
  EXPECT_HAS(of({"--trainer", "ppo", "--rl-reward-model-path", "nowhere"}),
             "Reward model path does not exist: nowhere");
  EXPECT_FALSE(has(of({"--trainer", "ppo", "--rl-reward-model-path", "a/b"}), "Reward model path"));
  EXPECT_HAS(of({"--use-distillation"}), "When use_distillation=True, you must specify");
  EXPECT_HAS(of({"--push-to-hub"}), "Username must be specified for push to hub");
  EXPECT_HAS(of({"--push-to-hub"}), "Token must be specified for push to hub");
  EXPECT_HAS(of({"--trainer", "grpo", "--rl-env-module", "m"}),
             "--rl-env-module: not supported: rl_env_module (no Python runs");
}

TEST_F(Tasks, ParametersOfOtherTrainersAreNoted) {
  const auto notes = resolved(llm({"--trainer", "sft", "--log", "none", "--rl-gamma", "0.9",
                                   "--rl-top-k", "50", "--model-ref", "x"}))
                         .notes;
  const std::vector<std::string> expected{
      "Parameter 'model_ref=x' is only used with trainer=dpo or orpo or ppo, but trainer=sft. This "
      "parameter will be ignored.",
      "Parameter 'rl_gamma=0.9' is only used with trainer=ppo, but trainer=sft. This parameter "
      "will "
      "be ignored."};
  EXPECT_EQ(notes, expected);
  EXPECT_HAS(resolved({"--config", write_params("  rl_gamma: 0.9\n")}).notes[0], "rl_gamma=0.9");
  EXPECT_HAS(refusal({"--config", write_params("  rl_gamma: much\n")}), "is not a number");
  EXPECT_HAS(refusal({"--config", write_params("  rl_gamma: 2\n")}), "out of range");
}

TEST_F(Tasks, MapsFromFlagsAndFiles) {
  const std::string expected = "not supported yet in this build: column_mapping";
  EXPECT_HAS(refusal(llm({"--column-mapping", "user_col=q,assistant_col=a"})), expected);
  EXPECT_HAS(refusal(llm({"--column-mapping", R"({"user_col": "q"})"})), expected);
  EXPECT_HAS(refusal({"--config", write_params("  column_mapping:\n    user_col: q\n")}), expected);
  EXPECT_EQ(refusal({"--config", write_params("  column_mapping: null\n")}), "accepted");
}

}  // namespace
}  // namespace aitraining::config
