// The table against the parameters of the Python package, kept as facts in tests/golden.
#include <fstream>
#include <map>
#include <sstream>

#include "config_test_support.h"
#include "field_table.h"
#include "field_value.h"

namespace aitraining::config {
namespace {

struct ReferenceParameter {
  Task task;
  std::string name, type, initial;
};

std::vector<ReferenceParameter> reference_parameters() {
  const std::map<std::string, Task> tasks{
      {"llm", Task::llm}, {"seq2seq", Task::seq2seq}, {"vlm", Task::vlm}};
  std::ifstream file(std::string(AITRAINING_SOURCE_DIR) + "/tests/golden/reference_parameters.tsv");
  std::vector<ReferenceParameter> parameters;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream parts(line);
    std::string task, name, type, initial;
    std::getline(parts, task, '\t');
    std::getline(parts, name, '\t');
    std::getline(parts, type, '\t');
    std::getline(parts, initial);
    parameters.push_back({tasks.at(task), name, type, initial});
  }
  return parameters;
}

std::string type_of(const Field& field) {
  constexpr const char* kTypes[] = {"bool", "int",    "float", "str", "bool?",
                                    "int?", "float?", "str?",  "map?"};
  const std::string type = kTypes[field.member.index()];
  return field.optional() || field.null_means.empty() ? type : type + "?";
}

// Required here, where the reference has a model and folders of its own choice.
bool required_here(const std::string& name) {
  return name == "model" || name == "project_name" || name == "data_path";
}
// May be written as null here though the reference does not say so.
bool null_allowed_here(const std::string& name) {
  return name == "log" || name == "save_processed_data" || name == "target_modules";
}

TEST(Reference, HasAllItsParameters) {
  std::map<Task, int> counts;
  for (const ReferenceParameter& parameter : reference_parameters()) {
    ++counts[parameter.task];
    EXPECT_NE(find_field(parameter.name, parameter.task), nullptr) << parameter.name;
  }
  EXPECT_EQ(counts[Task::llm], 153);
  EXPECT_EQ(counts[Task::seq2seq], 41);
  EXPECT_EQ(counts[Task::vlm], 40);
}

TEST(Reference, TypesAreItsTypes) {
  for (const ReferenceParameter& parameter : reference_parameters()) {
    const Field& field = *find_field(parameter.name, parameter.task);
    const std::string type = null_allowed_here(parameter.name) ? "str?" : parameter.type;
    EXPECT_EQ(type_of(field), type) << parameter.name;
  }
}

TEST(Reference, DefaultsAreItsDefaults) {
  for (const ReferenceParameter& parameter : reference_parameters()) {
    if (required_here(parameter.name)) continue;
    const Field& field = *find_field(parameter.name, parameter.task);
    EXPECT_EQ(to_json_value(field.initial), nlohmann::ordered_json::parse(parameter.initial))
        << parameter.name;
  }
}

// A default of the reference, given in full, asks for nothing that is not there.
TEST(Reference, DefaultsAreAccepted) {
  std::vector<std::string> flags;
  for (const ReferenceParameter& parameter : reference_parameters()) {
    if (parameter.task != Task::llm || required_here(parameter.name)) continue;
    const Field& field = *find_field(parameter.name);
    std::string value = value_text(field, field.initial);
    if (value == "unset") value = "none";
    if (field.boolean() && value == "none") continue;
    flags.push_back(flag_name(parameter.name) + "=" + value);
  }
  EXPECT_EQ(refusal(llm(flags)), "accepted");
}

TEST(Reference, WhatIsNotInThisBuildIsRefusedBothWays) {
  const auto other_value = [](const Field& field) -> std::string {
    if (field.boolean()) return field.initial == Value(true) ? "false" : "true";
    if (field.map()) return "a=b";
    if (type_name(field) == "a text") return field.choices.empty() ? "x" : field.choices.back();
    return "7";
  };
  int refused = 0;
  for (const Field* field : fields_of(Task::llm)) {
    if (field->available()) continue;
    ++refused;
    // Of another trainer it has no effect, whatever this build can do.
    if (!field->used_by("sft")) continue;
    const std::string assigned = flag_name(field->name) + "=" + other_value(*field);
    const std::string message = refusal(llm({"--trainer", "sft", assigned}));
    EXPECT_HAS(message, flag_name(field->name) + ": " + unavailable_text(*field));
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace aitraining::config
