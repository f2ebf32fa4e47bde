#include "model_template.h"

#include "aitraining/core/error.h"
#include "aitraining/core/log.h"
#include "aitraining/core/strings.h"

namespace aitraining::text {

using nlohmann::json;

namespace {

// [{"name": "default", "template": "..."}, ...]
std::optional<TemplateSource> pick_default(const json& list, const std::string& file) {
  std::vector<std::string> names;
  std::optional<TemplateSource> last;
  for (const auto& entry : list) {
    if (!entry.is_object() || !entry.contains("name") || !entry.contains("template") ||
        !entry["name"].is_string() || !entry["template"].is_string()) {
      throw UserError(
          "[text] {}: chat_template is a list, but not of objects with \"name\" and \"template\"",
          file);
    }
    names.push_back(entry["name"].get<std::string>());
    last = {entry["template"].get<std::string>(),
            fmt::format("{} (chat_template \"{}\")", file, names.back())};
    if (names.back() == "default") return last;
  }
  if (names.size() > 1) {
    log::warn("{}: none of its chat templates ({}) is named default, so none is used", file,
              join(names, ", "));
  }
  return names.size() == 1 ? last : std::nullopt;
}

std::optional<TemplateSource> from_json(const Files& files, const std::string& name,
                                        const std::string& origin) {
  const json values = read_object(files, name, origin);
  const auto found = values.find("chat_template");
  if (found == values.end() || found->is_null()) return std::nullopt;
  const std::string file = origin + "/" + name;
  if (found->is_string()) return TemplateSource{found->get<std::string>(), file};
  if (found->is_array()) return pick_default(*found, file);
  throw UserError("[text] {}: chat_template is neither a text nor a list of named templates", file);
}

}  // namespace

std::optional<TemplateSource> find_model_template(const Files& files, const std::string& origin) {
  if (const auto file = files.find("chat_template.jinja"); file != files.end()) {
    return TemplateSource{file->second, origin + "/chat_template.jinja"};
  }
  if (auto found = from_json(files, "tokenizer_config.json", origin)) return found;
  return from_json(files, "chat_template.json", origin);
}

}  // namespace aitraining::text
