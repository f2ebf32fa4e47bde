#pragma once
// Special tokens as Hugging Face's files name them.
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "aitraining/text/assets.h"

namespace aitraining::text {

using Files = std::map<std::string, std::string>;

// A JSON object among `files`; an empty object when there is no such file. UserError naming
// `origin` and the file.
nlohmann::json read_object(const Files& files, const std::string& name, const std::string& origin);

// The text of `name` ("bos_token"), a string or an object with "content", in tokenizer_config.json,
// else in special_tokens_map.json; empty when neither has one.
std::string special_token_text(const Files& files, const std::string& name,
                               const std::string& origin);

// What the files name beyond tokenizer.json (added_tokens_decoder, bos_token, ...) gets the next
// ids, in the order in which Hugging Face adds it. Returns tokenizer.json's text, changed only if
// something was added.
std::string with_named_tokens(const Files& files, const Tokenizer& tokenizer,
                              const std::string& origin);

// bos, eos, pad and unk as templates see them.
TemplateVariables template_variables(const Files& files, const std::string& origin);

}  // namespace aitraining::text
