#include <algorithm>

#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/strings.h"
#include "field_table.h"

namespace aitraining::config {
namespace {

std::string placeholder(const Field& field) {
  if (field.boolean()) return "";
  if (!field.choices.empty()) return join(field.choices, "|");
  if (std::holds_alternative<MemberOf<double>>(field.member)) return "NUMBER";
  return type_name(field) == "a whole number" ? "INT" : "TEXT";
}

std::string default_text(const Field& field) {
  if (field.initial == Value("")) return "required";
  return value_text(
      {.member = field.member, .name = field.name, .group = field.group, .help = field.help},
      field.initial);
}

std::string help_line(const Field& field) {
  std::string flag = flag_name(field.name);
  if (field.has_negation()) flag += ", --no-" + flag.substr(2);
  const std::string value = placeholder(field);
  if (!value.empty()) flag += " " + value;
  return fmt::format("  {}\n      {} [{}]\n", flag, field.help, default_text(field));
}

std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '|' || c == '<') result += '\\';
    result += c;
  }
  return result;
}

constexpr std::string_view kUsage =
    "Fine-tunes language models on CPUs and GPUs.\n\n"
    "  aitraining llm --train --model DIR --data-path DIR --project-name NAME [options]\n"
    "  aitraining --config FILE.yaml [options]        options given as flags win over the file\n"
    "  aitraining tools merge-llm-adapter --base-model-path DIR --adapter-path DIR --output-folder "
    "DIR\n"
    "  aitraining tools tokenize|logits --model DIR --input FILE.jsonl --output FILE\n"
    "  aitraining --version | --help\n\n"
    "Flags may be written with hyphens or underscores. Values in brackets are the defaults.\n\n"
    "Command\n"
    "  --train\n      Train; needed without --config\n"
    "  --config FILE\n      YAML file with task, backend, base_model, project_name, data, log and "
    "params\n"
    "  --backend local\n      Where to run; only local\n";

}  // namespace

std::string help_text() {
  std::string text(kUsage);
  for (Group group : kGroups) {
    text += fmt::format("\n{}\n", group_title(group));
    for (const Field& field : field_table()) {
      if (field.group == group) text += help_line(field);
    }
  }
  return text;
}

std::string describe(const ResolvedConfig& config) {
  constexpr const char* kOrigins[] = {"default", "file", "environment", "flag"};
  std::string text;
  for (const Field& field : field_table()) {
    const auto origin = config.origins.find(std::string(field.name));
    if (origin == config.origins.end()) continue;
    text += fmt::format("{} = {} ({})\n", field.name,
                        value_text(field, get_value(config.params, field)),
                        kOrigins[static_cast<int>(origin->second)]);
  }
  return text;
}

bool is_secret_flag(const std::string& argument) {
  std::string name = argument;
  std::ranges::replace(name, '_', '-');
  return std::ranges::any_of(field_table(),
                             [&](const Field& f) { return f.secret && flag_name(f.name) == name; });
}

std::string flag_list() {
  std::vector<std::string> lines{"--backend local", "--config FILE", "--help, -h", "--train",
                                 "--version, -v"};
  for (const Field& field : field_table()) {
    const std::string flag = flag_name(field.name), value = placeholder(field);
    lines.push_back(
        fmt::format("{}{}{} [{}]", flag, value.empty() ? "" : " ", value, default_text(field)));
    if (field.has_negation()) lines.push_back("--no-" + flag.substr(2));
  }
  std::ranges::sort(lines);
  return join(lines, "\n") + "\n";
}

std::string parameters_markdown() {
  std::string text =
      "# Parameters\n\n"
      "Made from the parameter table in `src/config/field_table.cpp`; a test compares this file "
      "with it.\n\n"
      "In YAML the names stand under `params`; flags are the same names with `--` and hyphens "
      "(underscores work too).\n";
  for (Group group : kGroups) {
    text += fmt::format(
        "\n## {}\n\n| name | values | default | trainers | meaning |\n|---|---|---|---|---|\n",
        group_title(group));
    for (const Field& field : field_table()) {
      if (field.group != group) continue;
      const std::string values = field.boolean() ? "true, false" : join(field.choices, ", ");
      text += fmt::format("| `{}` | {} | {} | {} | {} |\n", field.name,
                          values.empty() ? type_name(field).substr(2) : values, default_text(field),
                          field.trainers, escaped(field.help));
    }
  }
  return text;
}

}  // namespace aitraining::config
