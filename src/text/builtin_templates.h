#pragma once
// Chat templates that `--chat-template` knows by name.
#include <string_view>
#include <vector>

namespace aitraining::text {

struct BuiltinTemplate {
  std::string_view name;
  std::string_view source;
  // Tokens the template writes as text: each has to be one token of the tokenizer.
  std::vector<std::string_view> tokens;
  bool ends_with_eos = false;  // writes eos_token after a turn: the tokenizer has to have one
};

const std::vector<BuiltinTemplate>& builtin_templates();

}  // namespace aitraining::text
