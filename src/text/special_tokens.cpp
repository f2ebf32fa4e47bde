#include "special_tokens.h"

#include <array>
#include <set>

#include "aitraining/core/error.h"

namespace aitraining::text {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr std::array kNamed = {"bos_token", "eos_token", "unk_token", "sep_token",
                               "pad_token", "cls_token", "mask_token"};

std::string content_of(const json& token) {
  if (token.is_string()) return token.get<std::string>();
  if (!token.is_object()) return {};
  const auto content = token.find("content");
  return content != token.end() && content->is_string() ? content->get<std::string>()
                                                        : std::string();
}

ordered_json added_token(int64_t id, const std::string& text, const json& flags, bool special) {
  const auto flag = [&](const char* name, bool fallback) {
    const auto found = flags.is_object() ? flags.find(name) : flags.end();
    return found != flags.end() && found->is_boolean() ? found->get<bool>() : fallback;
  };
  return {{"id", id},
          {"content", text},
          {"single_word", flag("single_word", false)},
          {"lstrip", flag("lstrip", false)},
          {"rstrip", flag("rstrip", false)},
          {"normalized", flag("normalized", !special)},
          {"special", flag("special", special)}};
}

// Collects the tokens to add, in the order in which Hugging Face adds them.
class Missing {
 public:
  explicit Missing(const Tokenizer& tokenizer) : tokenizer_(tokenizer), next_(tokenizer.size()) {}

  void add(const json& token, bool special, std::optional<int64_t> id = {}) {
    const std::string text = content_of(token);
    if (text.empty() || tokenizer_.token_to_id(text) || !seen_.insert(text).second) return;
    tokens_.push_back(added_token(id.value_or(next_), text, token, special));
    ++next_;
  }
  const ordered_json& tokens() const { return tokens_; }

 private:
  const Tokenizer& tokenizer_;
  int64_t next_;
  std::set<std::string> seen_;
  ordered_json tokens_ = ordered_json::array();
};

void add_declared(Missing& missing, const json& decoder, const std::string& origin) {
  std::map<int64_t, json> by_id;
  for (const auto& [key, token] : decoder.items()) {
    if (key.empty() || key.size() > 9 || key.find_first_not_of("0123456789") != std::string::npos) {
      throw UserError(
          "[text] {}/tokenizer_config.json: added_tokens_decoder has the key \"{}\", which is not "
          "an id",
          origin, key);
    }
    by_id[std::stoll(key)] = token;
  }
  for (const auto& [id, token] : by_id) missing.add(token, false, id);
}

}  // namespace

json read_object(const Files& files, const std::string& name, const std::string& origin) {
  const auto file = files.find(name);
  if (file == files.end()) return json::object();
  json parsed;
  try {
    parsed = json::parse(file->second);
  } catch (const json::exception& error) {
    throw UserError("[text] {}/{} is not valid JSON: {}", origin, name, error.what());
  }
  if (!parsed.is_object())
    throw UserError("[text] {}/{} does not hold a JSON object", origin, name);
  return parsed;
}

std::string special_token_text(const Files& files, const std::string& name,
                               const std::string& origin) {
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const json values = read_object(files, file, origin);
    if (const auto found = values.find(name); found != values.end()) return content_of(*found);
  }
  return {};
}

std::string with_named_tokens(const Files& files, const Tokenizer& tokenizer,
                              const std::string& origin) {
  Missing missing(tokenizer);
  const json config = read_object(files, "tokenizer_config.json", origin);
  if (const auto decoder = config.find("added_tokens_decoder");
      decoder != config.end() && decoder->is_object()) {
    add_declared(missing, *decoder, origin);
  }
  const json map = read_object(files, "special_tokens_map.json", origin);
  for (const char* name : kNamed) {
    const json& holder = config.contains(name) ? config : map;
    if (holder.contains(name)) missing.add(holder[name], true);
  }
  for (const char* name : {"additional_special_tokens", "extra_special_tokens"}) {
    const json& holder = config.contains(name) ? config : map;
    if (!holder.contains(name) || !holder[name].is_array()) continue;
    for (const auto& token : holder[name]) missing.add(token, true);
  }
  const std::string& text = files.at("tokenizer.json");
  if (missing.tokens().empty()) return text;
  auto whole = ordered_json::parse(text);
  for (const auto& token : missing.tokens()) whole["added_tokens"].push_back(token);
  return whole.dump();
}

TemplateVariables template_variables(const Files& files, const std::string& origin) {
  return {.bos_token = special_token_text(files, "bos_token", origin),
          .eos_token = special_token_text(files, "eos_token", origin),
          .pad_token = special_token_text(files, "pad_token", origin),
          .unk_token = special_token_text(files, "unk_token", origin)};
}

}  // namespace aitraining::text
