#pragma once
// The chat template that comes with a model.
#include <optional>
#include <string>

#include "special_tokens.h"

namespace aitraining::text {

struct TemplateSource {
  std::string text;
  std::string origin;  // file (and name) it was read from
};

// chat_template.jinja, else tokenizer_config.json (of several named ones: `default`), else
// chat_template.json.
std::optional<TemplateSource> find_model_template(const Files& files, const std::string& origin);

}  // namespace aitraining::text
