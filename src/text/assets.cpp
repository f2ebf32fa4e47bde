#include "aitraining/text/assets.h"

#include <array>
#include <cmath>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "build_assets.h"
#include "length_limit.h"
#include "model_template.h"

namespace aitraining::text {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// Everything that belongs to a tokenizer in a model folder. Only some of it is read; all of it is
// saved again.
constexpr std::array kTextFiles = {"tokenizer.json",
                                   "tokenizer_config.json",
                                   "special_tokens_map.json",
                                   "added_tokens.json",
                                   "vocab.json",
                                   "merges.txt",
                                   "vocab.txt",
                                   "tokenizer.model",
                                   "spiece.model",
                                   "chat_template.jinja",
                                   "chat_template.json"};
constexpr const char* kMoreTemplates = "additional_chat_templates";

Files read_files(const fs::path& folder) {
  Files files;
  for (const char* name : kTextFiles) {
    if (fs::is_regular_file(folder / name)) files[name] = read_file(folder / name);
  }
  if (!fs::is_directory(folder / kMoreTemplates)) return files;
  for (const auto& entry : fs::directory_iterator(folder / kMoreTemplates)) {
    if (entry.is_regular_file() && entry.path().extension() == ".jinja") {
      files[std::string(kMoreTemplates) + "/" + entry.path().filename().string()] =
          read_file(entry.path());
    }
  }
  return files;
}

[[noreturn]] void refuse_without_tokenizer(const fs::path& folder, const Files& files) {
  if (!fs::is_directory(folder)) {
    throw UserError("[text] the model {} {}", folder.string(),
                    fs::exists(folder) ? "is neither a folder nor a GGUF file" : "does not exist");
  }
  const bool older = files.contains("tokenizer.model") || files.contains("spiece.model") ||
                     files.contains("vocab.json") || files.contains("vocab.txt");
  throw UserError(
      "[text] {} has no tokenizer.json{}. Save the model's tokenizer in that form: in Python, "
      "transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)",
      folder.string(), older ? " (it has an older form of tokenizer, which is not read)" : "");
}

std::optional<SpecialToken> resolve(const Tokenizer& tokenizer, const std::string& text) {
  const auto id = text.empty() ? std::nullopt : tokenizer.token_to_id(text);
  return id ? std::optional(SpecialToken{text, *id}) : std::nullopt;
}

void take_model_template(TextAssets& assets, const TemplateVariables& variables,
                         const std::string& origin) {
  const auto source = find_model_template(assets.files, origin);
  if (!source) return;
  try {
    assets.chat_template.emplace(source->text, variables, source->origin);
  } catch (const UserError& error) {
    // Another template may be chosen, or none be needed: only the use of this one is an error.
    assets.chat_template_error = error.what();
  }
}

}  // namespace

TextAssets build_assets(Files files, const std::string& origin) {
  const std::string file = origin + "/tokenizer.json";
  const std::string& text = files.at("tokenizer.json");
  auto tokenizer = Tokenizer::from_json(text, file);
  if (auto complete = with_named_tokens(files, tokenizer, origin); complete != text) {
    tokenizer = Tokenizer::from_json(complete, file);
  }
  const auto variables = template_variables(files, origin);
  TextAssets assets{.tokenizer = tokenizer,
                    .chat_template = {},
                    .chat_template_error = {},
                    .bos = resolve(tokenizer, variables.bos_token),
                    .eos = resolve(tokenizer, variables.eos_token),
                    .pad = resolve(tokenizer, variables.pad_token),
                    .model_max_length = length_limit(read_object(files, "tokenizer_config.json", origin)),
                    .files = {}};
  assets.files = std::move(files);
  take_model_template(assets, variables, origin);
  return assets;
}

TextAssets load_text_assets(const fs::path& model_folder) {
  auto files = read_files(model_folder);
  if (!files.contains("tokenizer.json")) refuse_without_tokenizer(model_folder, files);
  return build_assets(std::move(files), model_folder.string());
}

TextAssets open_text_assets(const fs::path& model_path) {
  const bool folder_with_tokenizer = fs::is_regular_file(model_path / "tokenizer.json");
  if (!folder_with_tokenizer) {
    if (const auto gguf = format::find_gguf(model_path))
      return text_assets_from_gguf(*format::GgufFile::open(*gguf));
  }
  return load_text_assets(model_path);
}

}  // namespace aitraining::text
