// The table itself, and what is generated from it.
#include <set>

#include "aitraining/core/files.h"
#include "config_test_support.h"
#include "field_table.h"
#include "field_value.h"
#include "reference_names.h"

namespace aitraining::config {
namespace {

void compare_with_file(const std::string& name, const std::string& generated) {
  const std::filesystem::path path = std::filesystem::path(AITRAINING_SOURCE_DIR) / name;
  if (std::getenv("AITRAINING_WRITE_GOLDEN")) write_file_atomic(path, generated);
  EXPECT_EQ(read_file(path), generated)
      << name << " is out of date: run this test with AITRAINING_WRITE_GOLDEN=1";
}

TEST(Table, FlagsEqualTheGoldenList) {
  compare_with_file("tests/golden/cli_options.txt", flag_list());
}
TEST(Table, DocumentedParametersEqualTheTable) {
  compare_with_file("docs/parameters.md", parameters_markdown());
}

TEST(Table, NamesAreUniqueAndNoNegationCollides) {
  std::set<std::string> names;
  for (const Field& field : field_table()) {
    EXPECT_TRUE(names.insert(std::string(field.name)).second) << field.name;
    if (!field.has_negation()) continue;
    EXPECT_TRUE(names.insert("no_" + std::string(field.name)).second) << field.name;
  }
  for (const char* flag : {"train", "config", "backend", "help", "version"})
    EXPECT_FALSE(names.contains(flag)) << flag;
  for (std::string_view later : reference_parameters())
    EXPECT_FALSE(names.contains(std::string(later))) << later;
}

TEST(Table, SuggestionsAreNoNamesOfTheirOwn) {
  std::set<std::string> seen;
  for (const Field& field : field_table()) {
    for (const std::string& other : field.also_called) {
      EXPECT_EQ(find_field(other), nullptr) << other;
      EXPECT_TRUE(seen.insert(other).second) << other;
    }
  }
}

TEST(Table, EveryMemberStandsOnceAndHasHelp) {
  std::set<size_t> offsets;
  TrainingParams params;
  for (const Field& field : field_table()) {
    const auto address = std::visit(
        [&](auto member) { return reinterpret_cast<size_t>(&(params.*member)); }, field.member);
    EXPECT_TRUE(offsets.insert(address).second) << field.name;
    EXPECT_FALSE(field.help.empty()) << field.name;
  }
}

TEST(Table, DefaultsAreInRangeAndAmongTheChoices) {
  const TrainingParams params = default_params();
  for (const Field& field : field_table()) {
    const std::string problem = check_value(params, field);
    EXPECT_EQ(problem, field.initial == Value("") ? std::string(field.missing) : "") << field.name;
  }
}

TEST(Table, DefaultsOfTheReference) {
  const TrainingParams p = default_params();
  EXPECT_EQ(p.lr, 3e-5);
  EXPECT_EQ(p.epochs, 1);
  EXPECT_EQ(p.batch_size, 2);
  EXPECT_EQ(p.gradient_accumulation, 4);
  EXPECT_EQ(p.warmup_ratio, 0.1);
  EXPECT_EQ(p.weight_decay, 0.0);
  EXPECT_EQ(p.max_grad_norm, 1.0);
  EXPECT_EQ(p.seed, 42);
  EXPECT_EQ(p.lora_r, 16);
  EXPECT_EQ(p.lora_alpha, 32);
  EXPECT_EQ(p.lora_dropout, 0.05);
  EXPECT_EQ(p.trainer, "default");
  EXPECT_EQ(p.log, "wandb");
  EXPECT_EQ(p.save_total_limit, 1);
  EXPECT_EQ(p.ddp_timeout, 7200);
  EXPECT_EQ(p.block_size, -1);
  EXPECT_EQ(p.model_max_length, 2048);
  EXPECT_TRUE(p.merge_adapter && p.add_eos_token && p.response_only_loss && p.hub_private &&
              p.apply_chat_template);
  EXPECT_FALSE(p.peft || p.chat_template || p.mixed_precision || p.distributed_backend ||
               p.packing || p.valid_split);
}

TEST(Table, HelpNamesEveryFlagUnderItsGroup) {
  const std::string help = help_text();
  for (const Field& field : field_table()) EXPECT_HAS(help, "\n  " + flag_name(field.name));
  for (Group group : kGroups) EXPECT_HAS(help, "\n" + std::string(group_title(group)) + "\n");
  EXPECT_LT(help.find("\nBasic\n"), help.find("  --model TEXT"));
  EXPECT_LT(help.find("\nPEFT/LoRA\n"), help.find("  --lora-r INT"));
}

}  // namespace
}  // namespace aitraining::config
