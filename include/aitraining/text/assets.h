#pragma once
// Everything that belongs to the text side of a model: tokenizer, template, special tokens, and the files to save again.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "aitraining/format/gguf.h"
#include "aitraining/text/chat_template.h"
#include "aitraining/text/tokenizer.h"

namespace aitraining::text {

struct SpecialToken { std::string text; int32_t id = -1; };

struct TextAssets {
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;
  // Why the model's own template is not in `chat_template`; empty when it is, or when there is none.
  std::string chat_template_error;
  std::optional<SpecialToken> bos, eos, pad;
  // tokenizer_config's model_max_length when it is a real limit (below 1e9), else none.
  std::optional<int64_t> model_max_length;
  // File name -> exact bytes. Copied unchanged from the model folder, or made from GGUF metadata. A name may hold a
  // folder ("additional_chat_templates/tool_use.jinja").
  std::map<std::string, std::string> files;
};

// Reads tokenizer.json, tokenizer_config.json, special_tokens_map.json, chat_template.jinja / chat_template.json,
// additional templates. A .jinja file wins over tokenizer_config; of a list of named templates `default` is used.
TextAssets load_text_assets(const std::filesystem::path& model_folder);
// tokenizer.ggml.* -> tokenizer.json (model "gpt2" with pre-tokenizers smollm, llama-bpe, qwen2, default).
TextAssets text_assets_from_gguf(const format::GgufFile& file);
// Folder or .gguf file.
TextAssets open_text_assets(const std::filesystem::path& model_path);
// model_max_length alone, without the tokenizer. None for a GGUF file, whose limit is the model's own.
std::optional<int64_t> tokenizer_length_limit(const std::filesystem::path& model_path);
// `--chat-template`: none/null -> no template; "tokenizer" -> the model's own (UserError naming --chat-template chatml
// and the others when it has none); chatml, zephyr, llama3, alpaca, ... -> built in; else a file path. A template that
// is not the model's own is put into `files` (chat_template.jinja), so that it is saved with the model.
void choose_chat_template(TextAssets& assets, const std::string& choice);

}  // namespace aitraining::text
