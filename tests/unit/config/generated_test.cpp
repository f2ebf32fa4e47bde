// What else is made from the table: the JSON schema and the completion scripts.
#include <cstdio>
#include <set>

#include "config_test_support.h"
#include "field_table.h"
#include "field_text.h"
#include "field_value.h"
#include "yaml_schema.h"

namespace aitraining::config {
namespace {

using Json = nlohmann::ordered_json;

const Json& section_of(const Json& schema, const std::string& path) {
  const Json* section = &schema;
  for (size_t at = 0; at < path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    section = &section->at("properties").at(path.substr(at, dot - at));
    at = dot + 1;
  }
  return *section;
}

TEST(Schema, HasTheKeysThatTheFileMayHave) {
  for (Task task : kTasks) {
    const Json schema = json_schema(task);
    for (const char* path : {"", "data", "data.column_mapping", "hub", "params"}) {
      const Json& section = section_of(schema, path);
      EXPECT_EQ(section.at("additionalProperties"), false);
      std::set<std::string> keys;
      for (const auto& [key, value] : section.at("properties").items()) keys.insert(key);
      const auto known = yaml_section(task, path)->known();
      EXPECT_EQ(keys, std::set<std::string>(known.begin(), known.end())) << path;
    }
  }
}

TEST(Schema, SaysWhatEachFieldTakes) {
  for (Task task : kTasks) {
    const Json schema = json_schema(task), params = section_of(schema, "params").at("properties");
    for (const Field* field : fields_of(task)) {
      const Json& entry = params.at(std::string(field->name));
      EXPECT_EQ(entry.at("description"), field->help);
      EXPECT_TRUE(entry.contains("enum") || entry.contains("type")) << field->name;
      EXPECT_EQ(entry.contains("x-not-in-this-build"), !field->available()) << field->name;
      if (entry.contains("default")) {
        EXPECT_EQ(entry.at("default"), to_json_value(field->initial)) << field->name;
      }
      for (const std::string& choice : field->choices)
        EXPECT_TRUE(entry.at("enum").is_array() && has(entry.at("enum").dump(), choice));
    }
  }
  const Json params = section_of(json_schema(), "params").at("properties");
  EXPECT_EQ(params.at("lr").at("minimum"), 0);
  EXPECT_EQ(params.at("lr").at("type"), "number");
  EXPECT_EQ(params.at("lora_dropout").at("exclusiveMaximum"), 1);
  EXPECT_EQ(params.at("block_size").at("anyOf").size(), 2u);
  EXPECT_EQ(params.at("peft").at("type"), "boolean");
}

TEST(Schema, IsPrintedForATask) {
  const Command command = parse_command_line({"schema", "--task", "seq2seq"});
  EXPECT_EQ(command.kind, Command::Kind::print);
  EXPECT_EQ(Json::parse(command.text), json_schema(Task::seq2seq));
  EXPECT_EQ(Json::parse(parse_command_line({"schema"}).text), json_schema(Task::llm));
  EXPECT_EQ(parse_command_line({"schema", "--task=llm-sft"}).text,
            parse_command_line({"schema"}).text);
  EXPECT_HAS(refusal({"schema", "--task", "lmm"}), "did you mean 'llm'?");
  EXPECT_HAS(refusal({"schema", "--taks", "llm"}), "did you mean --task?");
}

TEST(Completion, NamesEveryFlagInEveryShell) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = parse_command_line({"completion", shell}).text;
    for (const Field& field : field_table()) {
      for (const std::string& flag : flag_spellings(field)) {
        const bool fish = std::string(shell) == "fish";
        EXPECT_HAS(script, fish ? "-l " + flag.substr(2) + " " : flag);
      }
    }
  }
  EXPECT_HAS(refusal({"completion"}), "bash|zsh|fish");
  EXPECT_HAS(refusal({"completion", "bahs"}), "did you mean bash?");
}

using CompletionInBash = ConfigTest;

// What bash proposes for the last of `words`.
std::string proposals(const std::string& script, const std::string& words) {
  const std::string command =
      "bash --norc -c 'source " + script + "; COMP_WORDS=(aitraining " + words +
      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _aitraining; echo ${COMPREPLY[@]}' 2>&1";
  FILE* output = ::popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (size_t got = std::fread(buffer, 1, sizeof(buffer), output)) text.append(buffer, got);
  ::pclose(output);
  return text;
}

TEST_F(CompletionInBash, Proposes) {
  const std::string script = write(completion_script("bash"), "completion.bash");
  EXPECT_EQ(proposals(script, "se"), "seq2seq\n");
  EXPECT_EQ(proposals(script, "llm --lora-d"), "--lora-dropout\n");
  EXPECT_EQ(proposals(script, "llm --no-merge"), "--no-merge-adapter\n");
  EXPECT_EQ(proposals(script, "llm-sft --train --scheduler co"),
            "constant constant_with_warmup cosine\n");
  EXPECT_EQ(proposals(script, "seq2seq --early-stopping-p"), "--early-stopping-patience\n");
  EXPECT_EQ(proposals(script, "seq2seq --lora-ra"), "\n");
  EXPECT_EQ(proposals(script, "--conf"), "--config\n");
  EXPECT_EQ(proposals(script, "tools m"), "merge-llm-adapter\n");
  EXPECT_EQ(proposals(script, "completion z"), "zsh\n");
}

}  // namespace
}  // namespace aitraining::config
