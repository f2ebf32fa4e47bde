#include "field_text.h"

#include "aitraining/core/strings.h"

namespace aitraining::config {

std::string placeholder(const Field& field) {
  if (field.boolean()) return "";
  if (!field.choices.empty()) return join(field.choices, "|");
  if (field.map()) return "NAME=VALUE,...";
  const std::string type = type_name(field);
  return type == "a whole number" ? "INT" : type == "a number" ? "NUMBER" : "TEXT";
}

std::string default_text(const Field& field) {
  if (field.initial == Value("")) return "required";
  Field shown = field;
  shown.secret = false;  // a default is none
  return value_text(shown, field.initial);
}

std::vector<std::string> flag_spellings(const Field& field) {
  std::vector<std::string> flags{flag_name(field.name)};
  if (!field.second_name.empty()) flags.push_back(flag_name(field.second_name));
  if (field.has_negation()) flags.push_back("--no-" + flags[0].substr(2));
  return flags;
}

}  // namespace aitraining::config
