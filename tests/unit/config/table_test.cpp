// The table itself, and what is generated from it.
#include <map>
#include <set>

#include "aitraining/core/files.h"
#include "command_flags.h"
#include "config_test_support.h"
#include "field_table.h"
#include "field_value.h"

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
  for (Task task : kTasks) {
    std::set<std::string> names;
    for (const Field* field : fields_of(task)) {
      EXPECT_TRUE(names.insert(std::string(field->name)).second) << field->name;
      if (!field->has_negation()) continue;
      EXPECT_TRUE(names.insert("no_" + std::string(field->name)).second) << field->name;
    }
    for (const std::string& form : command_flag_forms())
      EXPECT_FALSE(names.contains(parameter_name(form.substr(0, form.find(' '))))) << form;
  }
}

TEST(Table, SuggestionsAreNoNamesOfTheirOwn) {
  for (Task task : kTasks) {
    std::set<std::string> seen;
    for (const Field* field : fields_of(task)) {
      for (const std::string& other : field->also_called) {
        EXPECT_EQ(find_field(other, task), nullptr) << other;
        EXPECT_TRUE(seen.insert(other).second) << other;
      }
    }
  }
}

TEST(Table, EveryMemberHasOneNameAndHelp) {
  std::map<size_t, std::string_view> names;
  TrainingParams params;
  for (const Field& field : field_table()) {
    const auto address = std::visit(
        [&](auto member) { return reinterpret_cast<size_t>(&(params.*member)); }, field.member);
    EXPECT_EQ(names.emplace(address, field.name).first->second, field.name);
    EXPECT_FALSE(field.help.empty()) << field.name;
    EXPECT_TRUE(field.not_yet.empty() || field.never.empty()) << field.name;
  }
  std::set<std::string_view> distinct;
  for (const auto& [address, name] : names)
    EXPECT_TRUE(distinct.insert(name).second) << name << " has two members";
}

TEST(Table, DefaultsAreInRangeAndAmongTheChoices) {
  for (Task task : kTasks) {
    const TrainingParams params = default_params(task);
    for (const Field* field : fields_of(task)) {
      Field known = *field;  // as if it were in this build
      known.not_yet = known.never = {};
      const bool required = field->initial == Value("");
      EXPECT_EQ(check_value(params, known).text, required ? std::string(field->missing) : "")
          << field->name;
    }
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

// Where the help shows the field's flag; npos: nowhere.
size_t place_in_help(const std::string& help, const Field& field) {
  for (const char* end : {" ", ",", "\n"}) {
    const size_t at = help.find("\n  " + flag_name(field.name) + end);
    if (at != std::string::npos) return at;
  }
  return std::string::npos;
}

TEST(Table, HelpNamesEveryFlagUnderItsGroup) {
  for (Task task : kTasks) {
    const std::string help = help_text(task);
    for (const Field* field : fields_of(task)) {
      const size_t group = help.find("\n" + std::string(group_title(field->group)) + "\n");
      ASSERT_NE(group, std::string::npos) << field->name;
      EXPECT_NE(place_in_help(help, *field), std::string::npos) << field->name;
      EXPECT_LT(group, place_in_help(help, *field)) << field->name;
    }
  }
  const std::string help = help_text();
  EXPECT_LT(help.find("\nBasic\n"), help.find("  --model TEXT"));
  EXPECT_LT(help.find("\nPEFT/LoRA\n"), help.find("  --lora-r INT"));
}

TEST(Table, HelpOfATrainerHasWhatItReads) {
  for (const char* trainer : {"sft", "default", "dpo", "orpo", "ppo", "reward", "grpo"}) {
    const std::string help = parse_command_line({"llm", "--help-trainer", trainer}).text;
    for (const Field* field : fields_of(Task::llm)) {
      EXPECT_EQ(place_in_help(help, *field) != std::string::npos, field->used_by(trainer))
          << trainer << " " << field->name;
    }
  }
}

}  // namespace
}  // namespace aitraining::config
