#include <algorithm>
#include <filesystem>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/strings.h"
#include "aitraining/text/assets.h"
#include "builtin_templates.h"
#include "special_tokens.h"

namespace aitraining::text {
namespace {

bool is_one_token(const Tokenizer& tokenizer, std::string_view token) {
  return tokenizer.token_to_id(token) && tokenizer.encode(token, false).ids.size() == 1;
}

// Empty when the tokenizer can serve the template, else why not.
std::string obstacle(const BuiltinTemplate& candidate, const TextAssets& assets) {
  for (const auto token : candidate.tokens) {
    if (!is_one_token(assets.tokenizer, token)) {
      return fmt::format(
          "writes the token {}, which this tokenizer does not have (it would be split into pieces)",
          token);
    }
  }
  if (candidate.ends_with_eos && !assets.eos)
    return "ends turns with the eos token, and this tokenizer has none";
  return {};
}

std::string usable_names(const TextAssets& assets) {
  std::vector<std::string> names;
  for (const auto& candidate : builtin_templates()) {
    if (obstacle(candidate, assets).empty()) names.emplace_back(candidate.name);
  }
  return names.empty() ? "none of the built-in ones fits" : join(names, ", ");
}

void require_own(const TextAssets& assets) {
  if (assets.chat_template) return;
  if (!assets.chat_template_error.empty()) {
    throw UserError(
        "{}. Choose another one with --chat-template (fitting this tokenizer: {}), or give a "
        "template file",
        assets.chat_template_error, usable_names(assets));
  }
  throw UserError(
      "[text] the tokenizer has no chat template of its own, so messages cannot be rendered: "
      "choose one with "
      "--chat-template, for example --chat-template chatml (fitting this tokenizer: {}), or give a "
      "template file",
      usable_names(assets));
}

void install(TextAssets& assets, std::string source, const std::string& origin) {
  assets.chat_template.emplace(source, template_variables(assets.files, origin), origin);
  assets.files["chat_template.jinja"] = std::move(source);
}

void install_builtin(TextAssets& assets, const BuiltinTemplate& chosen) {
  if (const auto why = obstacle(chosen, assets); !why.empty()) {
    throw UserError(
        "[text] --chat-template {} {}. Fitting this tokenizer: {}; or give a template file",
        chosen.name, why, usable_names(assets));
  }
  install(assets, std::string(chosen.source), std::string(chosen.name));
}

void install_file(TextAssets& assets, const std::string& choice) {
  if (std::filesystem::is_regular_file(choice)) return install(assets, read_file(choice), choice);
  std::vector<std::string> names = {"tokenizer", "none"};
  for (const auto& candidate : builtin_templates()) names.emplace_back(candidate.name);
  const auto near = nearest(choice, names);
  throw UserError("[text] --chat-template {}: neither a known name ({}) nor a file{}", choice,
                  join(names, ", "), near ? fmt::format("; did you mean {}?", *near) : "");
}

}  // namespace

void choose_chat_template(TextAssets& assets, const std::string& choice) {
  if (choice.empty() || choice == "none" || choice == "null") {
    assets.chat_template.reset();
    return;
  }
  if (choice == "tokenizer") return require_own(assets);
  const auto& all = builtin_templates();
  const auto chosen =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == choice; });
  if (chosen != all.end()) return install_builtin(assets, *chosen);
  install_file(assets, choice);
}

}  // namespace aitraining::text
