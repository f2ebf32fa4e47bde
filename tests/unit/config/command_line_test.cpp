#include "config_test_support.h"

namespace aitraining::config {
namespace {

using CommandLine = ConfigTest;

TEST_F(CommandLine, TheSixFlagsOfTheQuickStart) {
  const ResolvedConfig config =
      resolved({"llm", "--train", "--model", "meta-llama/Llama-3.2-1B", "--data-path", "./data",
                "--project-name", "my-model", "--trainer", "sft", "--peft"});
  EXPECT_EQ(config.params.model, "meta-llama/Llama-3.2-1B");
  EXPECT_EQ(config.params.data_path, "./data");
  EXPECT_EQ(config.params.trainer, "sft");
  EXPECT_TRUE(config.params.peft);
  EXPECT_EQ(config.params.project_name, (std::filesystem::current_path() / "my-model").string());
  EXPECT_EQ(config.origins.at("peft"), Origin::flag);
  EXPECT_FALSE(config.origins.contains("lr"));
  EXPECT_EQ(config.notes,
            std::vector<std::string>{
                "W&B logging is not in this build: metrics go to trainer_state.json"});
}

TEST_F(CommandLine, HyphensUnderscoresAndEqualsSigns) {
  const TrainingParams p =
      params_of({"llm", "--train", "--model=m", "--data_path", "d", "--project_name=x",
                 "--batch_size=3", "--gradient-accumulation", "2", "--merge_adapter"});
  EXPECT_EQ(p.batch_size, 3);
  EXPECT_EQ(p.gradient_accumulation, 2);
  EXPECT_TRUE(p.merge_adapter);
}

TEST_F(CommandLine, BooleansCanBeTurnedOffAndSetByValue) {
  EXPECT_FALSE(params_of(llm({"--no-merge-adapter"})).merge_adapter);
  EXPECT_FALSE(params_of(llm({"--no_add_eos_token"})).add_eos_token);
  EXPECT_FALSE(params_of(llm({"--no-response-only-loss"})).response_only_loss);
  EXPECT_EQ(params_of(llm({"--no-packing"})).packing, false);
  EXPECT_EQ(params_of(llm({"--packing"})).packing, true);
  EXPECT_EQ(params_of(llm({})).packing, std::nullopt);
  EXPECT_FALSE(params_of(llm({"--peft=false"})).peft);
  EXPECT_HAS(refusal(llm({"--peft=maybe"})), "--peft: 'maybe' is not true or false");
  EXPECT_HAS(refusal(llm({"--peft", "true"})), "unexpected argument 'true'");
  EXPECT_HAS(refusal(llm({"--merge-adapter", "--no-merge-adapter"})),
             "--merge-adapter is given 2 times");
  EXPECT_HAS(refusal(llm({"--no-peft"})), "--peft is off unless it is given");
}

TEST_F(CommandLine, UnknownFlagsAreAllNamedWithTheNearest) {
  const std::string message =
      refusal(llm({"--learning-rat", "1e-3", "--batchsize=4", "--bs", "2", "--epoch", "3"}));
  EXPECT_HAS(message, "unrecognized arguments: --learning-rat; did you mean --lr?");
  EXPECT_HAS(message, "unrecognized arguments: --batchsize; did you mean --batch-size?");
  EXPECT_HAS(message, "unrecognized arguments: --bs; see aitraining --help");
  EXPECT_HAS(message, "unrecognized arguments: --epoch; did you mean --epochs?");
  EXPECT_HAS(message, "4 problems:");
  EXPECT_FALSE(has(message, "1e-3"));
}

TEST_F(CommandLine, PrefixesAreNotAccepted) {
  EXPECT_HAS(refusal(llm({"--train-spl", "x"})),
             "unrecognized arguments: --train-spl; did you mean --train-split?");
}

TEST_F(CommandLine, WhatIsNotInThisBuildIsSaid) {
  const std::string sweep =
      "--use-sweep: not supported yet in this build: use_sweep (start one run per set of values "
      "from a shell loop)";
  EXPECT_EQ(refusal(llm({"--use-sweep"})), sweep);
  EXPECT_EQ(refusal(llm({"--use_sweep=true"})), sweep);
  EXPECT_EQ(refusal(llm({"--sweep-n-trials", "many"})),
            "--sweep-n-trials: not supported yet in this build: sweep_n_trials (it belongs to "
            "use_sweep)");
  EXPECT_HAS(refusal(llm({"--unsloth"})), "--unsloth: not supported: unsloth (Unsloth is a Python");
  EXPECT_EQ(refusal(llm({"--use-sweep=false", "--sweep-n-trials", "10", "--sweep-backend", "none",
                         "--no-wandb-visualizer", "--conversation-extension=1"})),
            "accepted");
  EXPECT_HAS(refusal(llm({"--deploy"})), "not supported yet in this build: --deploy");
  EXPECT_HAS(refusal(llm({"--deploy"})), "Deploy is not implemented yet");
  EXPECT_HAS(refusal(llm({"--gradient_accumulation_steps", "2"})),
             "did you mean --gradient-accumulation?");
}

TEST_F(CommandLine, DoubledFlagsAndMissingValues) {
  EXPECT_EQ(refusal(llm({"--batch-size", "2", "--batch-size", "3"})),
            "--batch-size is given 2 times; give it once");
  EXPECT_EQ(refusal(llm({"--batch-size", "2", "--batch_size=3"})),
            "--batch-size is given 2 times; give it once");
  EXPECT_EQ(refusal(llm({"--lr"})), "--lr needs a value");
  EXPECT_EQ(refusal({"llm", "--train", "--model", "m", "--data-path", "--project-name", "x"}),
            "2 problems:\n  --data-path needs a value\n  Data path must be specified (--data-path, "
            "or data.path in the file)");
  EXPECT_HAS(refusal(llm({"stray"})), "unexpected argument 'stray'");
}

TEST_F(CommandLine, Numbers) {
  EXPECT_EQ(params_of(llm({"--lr", "0"})).lr, 0.0);
  EXPECT_EQ(params_of(llm({"--lr", ".00002"})).lr, 2e-5);
  EXPECT_HAS(refusal(llm({"--lr", "-1e-5"})), "--lr: -1e-05 is out of range: lr is 0 or more");
  EXPECT_HAS(refusal(llm({"--lr", "nan"})), "--lr: 'nan' is not a number");
  EXPECT_HAS(refusal(llm({"--lr", "1e999"})), "--lr: '1e999' is not a number");
  EXPECT_HAS(refusal(llm({"--lr", ""})), "--lr");
  EXPECT_HAS(refusal(llm({"--batch-size", "2.5"})), "--batch-size: '2.5' is not a whole number");
  EXPECT_HAS(refusal(llm({"--batch-size", "0"})),
             "--batch-size: 0 is out of range: batch_size is 1 or more");
  EXPECT_HAS(refusal(llm({"--warmup-ratio", "1.5"})), "warmup_ratio is from 0 to 1");
  EXPECT_HAS(refusal(llm({"--lora-dropout", "1"})), "lora_dropout is from 0 to below 1");
  EXPECT_HAS(refusal(llm({"--lora-r", "0"})), "lora_r is 1 or more");
  EXPECT_EQ(params_of(llm({"--block-size", "-1"})).block_size, -1);
  EXPECT_HAS(refusal(llm({"--block-size", "0"})), "block_size is 2 or more, or -1");
  EXPECT_HAS(refusal(llm({"--epochs", "99999999999999999999"})), "is not a whole number");
}

TEST_F(CommandLine, ChoicesOfEachKind) {
  EXPECT_HAS(refusal(llm({"--trainer", "dpo"})),
             "not supported yet in this build: trainer dpo (available: sft, default)");
  EXPECT_HAS(refusal(llm({"--trainer", "stf"})),
             "Invalid trainer 'stf'. Valid options: default, distillation, dpo, generic, grpo, "
             "orpo, ppo, reward, sft");
  EXPECT_EQ(params_of(llm({"--trainer", "generic"})).trainer, "default");
  EXPECT_EQ(params_of(llm({"--distributed-backend", "ddp"})).distributed_backend, "ddp");
  EXPECT_EQ(params_of(llm({"--distributed-backend", "None"})).distributed_backend, std::nullopt);
  EXPECT_HAS(refusal(llm({"--distributed-backend", "fsdp"})),
             "Unsupported distributed backend: 'fsdp' (valid: ddp, deepspeed, zero3, zero2)");
  for (const char* engine : {"deepspeed", "zero3", "zero2"}) {
    EXPECT_EQ(params_of(llm({"--distributed-backend", engine})).distributed_backend, engine);
  }
  EXPECT_EQ(params_of(llm({"--mixed-precision", "no"})).mixed_precision, std::nullopt);
  EXPECT_EQ(params_of(llm({"--mixed-precision", "bf16"})).mixed_precision, "bf16");
  EXPECT_HAS(refusal(llm({"--mixed-precision", "bf61"})),
             "Unknown mixed_precision mode: bf61. Choose between");
  EXPECT_HAS(refusal(llm({"--scheduler", "cosin"})), "did you mean 'cosine'?");
  EXPECT_HAS(refusal(llm({"--optimizer", "adafactor"})),
             "not supported yet in this build: optimizer adafactor");
  EXPECT_HAS(refusal(llm({"--log", "tensorboard"})),
             "not supported yet in this build: log tensorboard");
  EXPECT_TRUE(params_of(llm({"--deterministic"})).deterministic);
  EXPECT_EQ(params_of(llm({"--resume-from-checkpoint", "latest"})).resume_from_checkpoint, "auto");
  EXPECT_EQ(params_of(llm({"--resume-from-checkpoint", "true"})).resume_from_checkpoint, "auto");
  EXPECT_EQ(params_of(llm({"--resume-from-checkpoint", "/x/y"})).resume_from_checkpoint, "/x/y");
}

TEST_F(CommandLine, OptionsOfShardedEngines) {
  const auto zero3 = params_of(llm({"--distributed-backend", "zero3", "--zero3-resident", "auto",
                                    "--offload-optimizer", "cpu", "--offload-param", "cpu"}));
  EXPECT_EQ(zero3.zero3_resident, "auto");
  EXPECT_EQ(zero3.offload_optimizer, "cpu");
  EXPECT_EQ(zero3.offload_param, "cpu");
  EXPECT_EQ(params_of(llm({"--offload-optimizer", "none"})).offload_optimizer, std::nullopt);
  EXPECT_HAS(refusal(llm({"--zero3-resident", "3"})), "--distributed-backend zero3");
  EXPECT_HAS(refusal(llm({"--distributed-backend", "zero3", "--zero3-resident", "-1"})),
             "neither a number of units");
  EXPECT_HAS(refusal(llm({"--distributed-backend", "zero2", "--offload-param", "cpu"})),
             "only ZeRO-3");
  EXPECT_HAS(refusal(llm({"--offload-optimizer", "nvme"})), "is not one of cpu");
}

TEST_F(CommandLine, QuantizationSaysWhatToChange) {
  for (const char* kind : {"int4", "int8"}) {
    const std::string with_peft = refusal(llm({"--peft", "--quantization", kind}));
    EXPECT_HAS(with_peft, std::string("not supported yet in this build: quantization ") + kind);
    EXPECT_HAS(with_peft, "Remove --quantization, and use --mixed-precision bf16");
  }
  EXPECT_HAS(refusal(llm({"--quantization", "int4"})), "quantization int4 without peft");
}

TEST_F(CommandLine, RequiredValuesAreAllNamed) {
  const std::string message = refusal({"llm", "--train"});
  EXPECT_HAS(message, "Model must be specified");
  EXPECT_HAS(message, "Project name must be specified");
  EXPECT_HAS(message, "Data path must be specified");
  EXPECT_HAS(refusal({"llm", "--model", "m", "--data-path", "d", "--project-name", "p"}),
             "nothing to do: add --train");
}

TEST_F(CommandLine, ProjectNames) {
  const auto with_name = [](const std::string& name) {
    return std::vector<std::string>{"llm",         "--train", "--model",        "m",
                                    "--data-path", "d",       "--project-name", name};
  };
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(params_of(with_name("../x")).project_name, (here.parent_path() / "x").string());
  EXPECT_EQ(params_of(with_name("/abs/some folder/run_1.b")).project_name,
            "/abs/some folder/run_1.b");
  EXPECT_EQ(params_of(with_name("a/b/")).project_name, (here / "a" / "b").string());
  EXPECT_EQ(params_of(with_name(std::string(50, 'n'))).project_name,
            (here / std::string(50, 'n')).string());
  EXPECT_HAS(refusal(with_name("my model")),
             "'my model' holds a blank: project_name must be alphanumeric");
  EXPECT_HAS(refusal(with_name("mod\xC3\xA4ll")), "holds '\xC3\xA4'");
  EXPECT_HAS(refusal(with_name("a:b")), "holds ':'");
  EXPECT_HAS(refusal(with_name(std::string(60, 'n'))),
             "project_name basename cannot be more than 50 characters");
  EXPECT_HAS(refusal(with_name("/")), "has no folder name");
  EXPECT_HAS(refusal(with_name("~/x")), "write the path out");
  setenv("AUTOTRAIN_PROJECTS_DIR", "/projects", 1);
  EXPECT_EQ(params_of(with_name("x")).project_name, "/projects/x");
  EXPECT_EQ(params_of(with_name("/y")).project_name, "/y");
  unsetenv("AUTOTRAIN_PROJECTS_DIR");
}

TEST_F(CommandLine, TemplateSwitches) {
  EXPECT_EQ(params_of(llm({})).chat_template, std::nullopt);
  EXPECT_EQ(params_of(llm({"--chat-template", "none"})).chat_template, "none");
  EXPECT_EQ(params_of(llm({"--chat-template", "chatml"})).chat_template, "chatml");
  EXPECT_EQ(params_of(llm({"--no-apply-chat-template"})).chat_template, "none");
  EXPECT_HAS(refusal(llm({"--no-apply-chat-template", "--chat-template", "chatml"})),
             "remove one of the two");
  EXPECT_HAS(refusal(llm({"--text-column", "autotrain_text"})),
             "autotrain_text is a reserved column name");
}

TEST_F(CommandLine, WhatHasNoEffectIsNoted) {
  const auto notes =
      resolved(llm({"--log", "none", "--padding", "left", "--lora-r", "8", "--eval-strategy",
                    "steps", "--save-steps", "5", "--attn-implementation", "sdpa"}))
          .notes;
  const std::vector<std::string> expected{
      "padding has no effect: batches carry no padding",
      "attn_implementation has no effect: the fastest exact kernel of the device is always used",
      "eval_strategy has no effect: there is no valid_split to evaluate on",
      "save_steps has no effect: save_strategy is not steps",
      "lora_r has no effect: it is used with --peft only"};
  EXPECT_EQ(notes, expected);
  EXPECT_TRUE(resolved(llm({"--log", "none"})).notes.empty());
}

TEST_F(CommandLine, SecretsComeFromFlagOrEnvironmentAndAreNeverShown) {
  setenv("HF_TOKEN", "hf_ENV", 1);
  setenv("WANDB_API_KEY", "wb_ENV", 1);
  const ResolvedConfig from_env = resolved(llm({}));
  EXPECT_EQ(from_env.params.token, "hf_ENV");
  EXPECT_EQ(from_env.params.wandb_token, "wb_ENV");
  EXPECT_EQ(from_env.origins.at("token"), Origin::environment);
  const ResolvedConfig from_flag = resolved(llm({"--token", "hf_FLAG"}));
  EXPECT_EQ(from_flag.params.token, "hf_FLAG");
  const std::string lines = describe(from_flag);
  EXPECT_HAS(lines, "token = ***");
  for (const char* secret : {"hf_FLAG", "hf_ENV", "wb_ENV"}) {
    EXPECT_FALSE(has(lines, secret));
    EXPECT_FALSE(has(to_json(from_flag.params).dump(), secret));
  }
  EXPECT_FALSE(has(refusal(llm({"--tokn", "hf_TYPO"})), "hf_TYPO"));
  EXPECT_FALSE(has(refusal(llm({"--tokn=hf_TYPO"})), "hf_TYPO"));
  EXPECT_FALSE(has(refusal(llm({"--token", "hf_A", "--token", "hf_B"})), "hf_"));
  unsetenv("HF_TOKEN");
  unsetenv("WANDB_API_KEY");
}

TEST_F(CommandLine, SecretFlagsAreKnownForHidingThem) {
  EXPECT_TRUE(is_secret_flag("--token"));
  EXPECT_TRUE(is_secret_flag("--wandb-token"));
  EXPECT_TRUE(is_secret_flag("--wandb_token"));
  EXPECT_FALSE(is_secret_flag("--model"));
  EXPECT_FALSE(is_secret_flag("token"));
}

TEST_F(CommandLine, OtherForms) {
  EXPECT_EQ(parse_command_line({}).kind, Command::Kind::help);
  EXPECT_EQ(parse_command_line({"--help"}).text, help_text());
  EXPECT_EQ(parse_command_line({"llm", "--train", "-h"}).kind, Command::Kind::help);
  EXPECT_EQ(parse_command_line({"--version"}).kind, Command::Kind::version);
  EXPECT_EQ(parse_command_line({"-v"}).text.substr(0, 11), "aitraining ");
  const Command rank = parse_command_line({"--run-rank", "/p/training_params.json"});
  EXPECT_EQ(rank.kind, Command::Kind::run_rank);
  EXPECT_EQ(rank.rank_params, "/p/training_params.json");
  EXPECT_HAS(refusal({"--run-rank"}), "needs one file");
  EXPECT_HAS(refusal({"seq2seq", "--train"}), "not supported yet in this build: task seq2seq");
  EXPECT_HAS(refusal({"llmm"}), "unknown command 'llmm'; did you mean 'llm'?");
}

TEST_F(CommandLine, Tools) {
  const Command merge = parse_command_line({"tools", "merge-llm-adapter", "--base-model-path", "b",
                                            "--adapter_path", "a", "--output-folder=o"});
  EXPECT_EQ(merge.kind, Command::Kind::tool);
  EXPECT_EQ(
      merge.tool_request,
      R"({"tool":"merge-llm-adapter","base_model_path":"b","adapter_path":"a","output_folder":"o"})");
  EXPECT_EQ(parse_command_line({"tools", "logits", "--model", "m", "--input", "i", "--output", "o"})
                .tool_request,
            R"({"tool":"logits","model":"m","input":"i","output":"o"})");
  const std::string message =
      refusal({"tools", "merge-llm-adapter", "--base-model-path", "b", "--adaptr-path", "a"});
  EXPECT_HAS(message, "--adapter-path must be specified");
  EXPECT_HAS(message, "--output-folder must be specified");
  EXPECT_HAS(message, "unrecognized arguments: --adaptr-path; did you mean --adapter-path?");
  EXPECT_HAS(refusal({"tools", "convert_to_kohya"}), "not supported yet");
  EXPECT_HAS(refusal({"tools", "x"}),
             "unknown tool 'x' (available: logits, merge-llm-adapter, tokenize)");
}

}  // namespace
}  // namespace aitraining::config
