#include "aitraining/text/chat_template.h"

#include <rust/cxx.h>

#include "aitraining-bridge/src/lib.rs.h"
#include "aitraining/core/error.h"

namespace aitraining::text {

using nlohmann::ordered_json;

struct ChatTemplate::Impl {
  rust::Box<bridge::TemplateHandle> handle;
};

namespace {

// Rust's JSON reader stops at 128 levels; JSON's writer here would recurse without a limit.
constexpr int kMaxDepth = 100;

rust::Slice<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

bool deeper_than(const ordered_json& value, int levels) {
  if (!value.is_structured()) return false;
  if (levels == 0) return true;
  for (const auto& item : value) {
    if (deeper_than(item, levels - 1)) return true;
  }
  return false;
}

void add_token(ordered_json& variables, const char* name, const std::string& token) {
  // A token that the model lacks is undefined in the template, as in Hugging Face's tokenizers.
  if (!token.empty()) variables[name] = token;
}

std::string to_text(const ordered_json& variables) {
  try {
    return variables.dump();
  } catch (const ordered_json::exception& error) {
    throw TemplateError(fmt::format("the conversation is not valid text: {}", error.what()));
  }
}

// Templates that join strings with + fail on a null content (a turn with tool calls only); to them
// it is an empty one.
bool blank_null_contents(ordered_json& messages) {
  bool changed = false;
  for (auto& message : messages) {
    if (!message.is_object()) continue;
    const auto content = message.find("content");
    if (content != message.end() && content->is_null()) {
      *content = "";
      changed = true;
    }
  }
  return changed;
}

Rendered unpack(const bridge::RenderResult& result, bool has_generation_tags) {
  Rendered rendered;
  rendered.text = std::string(result.text);
  rendered.has_generation_tags = has_generation_tags;
  for (size_t i = 0; i < result.begin.size(); ++i) {
    rendered.generations.push_back({result.begin[i], result.end[i]});
  }
  return rendered;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string source, TemplateVariables variables,
                           const std::string& origin)
    : source_(std::move(source)), variables_(std::move(variables)) {
  try {
    impl_ = std::make_shared<Impl>(Impl{bridge::compile_template(bytes_of(source_))});
  } catch (const rust::Error& error) {
    throw UserError("[text] the chat template {} cannot be read: {}", origin, error.what());
  }
}

Rendered ChatTemplate::render(const ordered_json& messages, const ordered_json& tools,
                              bool add_generation_prompt) const {
  ordered_json variables = {{"messages", messages},
                            {"tools", tools},
                            {"documents", nullptr},
                            {"add_generation_prompt", add_generation_prompt}};
  if (deeper_than(variables, kMaxDepth)) {
    throw TemplateError(
        fmt::format("the conversation is nested more than {} levels deep", kMaxDepth));
  }
  add_token(variables, "bos_token", variables_.bos_token);
  add_token(variables, "eos_token", variables_.eos_token);
  add_token(variables, "pad_token", variables_.pad_token);
  add_token(variables, "unk_token", variables_.unk_token);
  auto result = impl_->handle->render(bytes_of(to_text(variables)));
  if (!result.error.empty() && !result.refused && blank_null_contents(variables["messages"])) {
    result = impl_->handle->render(bytes_of(to_text(variables)));
  }
  if (!result.error.empty()) throw TemplateError(std::string(result.error));
  return unpack(result, impl_->handle->has_generation_tags());
}

}  // namespace aitraining::text
