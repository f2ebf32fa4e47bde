#pragma once
// Chat templates as Hugging Face runs them (jinja2 with trim_blocks and lstrip_blocks, loop controls, tojson,
// raise_exception, strftime_now, the `generation` tag), over the Rust crate `minijinja`.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace aitraining::text {

struct CharSpan { size_t begin = 0, end = 0; };  // byte offsets in the rendered text

struct Rendered {
  std::string text;
  std::vector<CharSpan> generations;  // what stood inside {% generation %} tags, in order; empty without such tags
  bool has_generation_tags = false;
};

struct TemplateVariables {
  std::string bos_token, eos_token, pad_token, unk_token;
};

// The template itself refused the conversation (raise_exception) or failed; `what()` holds its own message.
struct TemplateError : std::runtime_error { using std::runtime_error::runtime_error; };

class ChatTemplate {
 public:
  // UserError naming `origin` and the line when the source does not parse.
  ChatTemplate(std::string source, TemplateVariables variables, const std::string& origin);

  // `messages`: array of objects, keys absent stay absent, null is none (and printed as nothing). A template that fails
  // on a null content is run again with an empty one. `tools`: array or null. TemplateError on refusal.
  Rendered render(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                  bool add_generation_prompt) const;
  const std::string& source() const { return source_; }

  struct Impl;

 private:
  std::string source_;
  TemplateVariables variables_;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace aitraining::text
