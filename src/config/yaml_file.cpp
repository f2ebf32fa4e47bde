#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/strings.h"
#include "draft.h"
#include "yaml_schema.h"

namespace aitraining::config {
namespace {

const char* kind_name(const YAML::Node& node) {
  return node.IsMap()        ? "a map"
         : node.IsSequence() ? "a list"
         : node.IsNull()     ? "nothing"
                             : "a single value";
}

class YamlReader {
 public:
  YamlReader(std::string path, Draft& draft) : path_(std::move(path)), draft_(draft) {}

  void read(const YAML::Node& root) {
    read_section(root, yaml_section(""), "", root.Mark());
    apply_backend();
    apply_task();
  }

 private:
  struct Text {
    std::string value;
    YAML::Mark mark;
  };

  std::string at(const YAML::Mark& mark) const {
    return fmt::format("{}:{}:{}", path_, mark.line + 1, mark.column + 1);
  }
  void problem(const YAML::Mark& mark, const std::string& text) {
    draft_.problems.push_back(at(mark) + ": " + text);
  }

  void read_section(const YAML::Node& node, const YamlSection& section, const std::string& prefix,
                    YAML::Mark mark) {
    if (node.IsNull()) return;
    if (!node.IsMap())
      return problem(
          mark, fmt::format("{}: a map of keys is due, found {}", section.name, kind_name(node)));
    std::map<std::string, int> first_line;
    // The library keeps both of two equal keys in the node, and lookup would find the first without
    // a word.
    for (const auto& entry : node) {
      const YAML::Node key = entry.first, value = entry.second;
      if (!key.IsScalar()) {
        problem(key.Mark(), fmt::format("a key must be a plain word, found {}", kind_name(key)));
        continue;
      }
      const auto [seen, fresh] = first_line.emplace(key.Scalar(), key.Mark().line + 1);
      if (!fresh) {
        problem(key.Mark(), fmt::format("'{}{}' is given twice: lines {} and {}", prefix,
                                        key.Scalar(), seen->second, key.Mark().line + 1));
        continue;
      }
      read_entry(section, prefix, key, value);
    }
  }

  void read_entry(const YamlSection& section, const std::string& prefix, const YAML::Node& key,
                  const YAML::Node& value) {
    const std::string& name = key.Scalar();
    if (section.name.empty() && (name == "task" || name == "backend"))
      return read_header(name, key, value);
    if (const YamlSection* inner = section.inner(name))
      return read_section(value, *inner, prefix + name + ".", key.Mark());
    const Field* field = section.field(name);
    if (!field) return problem(key.Mark(), unknown_yaml_key(section, name));
    assign(*field, prefix + name, key.Mark(), value);
  }

  void read_header(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    if (!value.IsScalar())
      return problem(key.Mark(),
                     fmt::format("{}: a word is due, found {}", name, kind_name(value)));
    (name == "task" ? task_ : backend_) = Text{value.Scalar(), value.Mark()};
  }

  void assign(const Field& field, const std::string& name, YAML::Mark key,
              const YAML::Node& value) {
    const std::string place = at(value.IsNull() ? key : value.Mark()) + ": " + name;
    if (draft_.given(field.name)) {
      return problem(key, fmt::format("{} is given twice: also at {}", name,
                                      draft_.where[std::string(field.name)]));
    }
    if (value.IsNull()) return draft_.assign_null_value(field, Origin::file, place);
    if (value.IsScalar()) return assign_scalar(field, place, value.Scalar());
    if (field.list && value.IsSequence()) return assign_list(field, place, value);
    draft_.record(field, Origin::file, place,
                  fmt::format("{} is due, found {}", type_name(field), kind_name(value)));
  }

  void assign_list(const Field& field, const std::string& place, const YAML::Node& list) {
    std::vector<std::string> parts;
    for (const auto& part : list) {
      if (!part.IsScalar()) {
        return draft_.record(field, Origin::file, place,
                             fmt::format("texts are due, found {} in it", kind_name(part)));
      }
      parts.push_back(part.Scalar());
    }
    draft_.assign(field, join(parts, ","), Origin::file, place);
  }

  // ${NAME} stands for the environment's value where people would otherwise write a secret into the
  // file.
  void assign_scalar(const Field& field, const std::string& place, const std::string& text) {
    const bool reference = text.starts_with("${") && text.ends_with("}");
    if (!reference || !(field.secret || field.name == "username")) {
      return draft_.assign(field, text, Origin::file, place);
    }
    const std::string name = text.substr(2, text.size() - 3);
    const char* value = std::getenv(name.c_str());
    if (value) return draft_.assign(field, value, Origin::environment, place);
    draft_.record(field, Origin::file, place,
                  fmt::format("the environment variable {} is not set", name));
  }

  void apply_backend() {
    if (!backend_) {
      draft_.problems.push_back(path_ +
                                ": Backend is required in the configuration file (backend: local)");
    } else if (backend_->value != "local") {
      problem(backend_->mark,
              fmt::format("Invalid backend: {} (this build runs on this machine only: local)",
                          backend_->value));
    }
  }

  void apply_task() {
    if (!task_) {
      draft_.problems.push_back(
          path_ + ": Task is required in the configuration file (for example task: llm-sft)");
      return;
    }
    const auto trainer = trainer_of_task(task_->value);
    if (!trainer) return problem(task_->mark, task_problem(task_->value));
    if (trainer->empty() || draft_.given("trainer")) return;  // params.trainer wins over the task
    draft_.assign(*find_field("trainer"), *trainer, Origin::file, at(task_->mark) + ": task");
  }

  std::string path_;
  Draft& draft_;
  std::optional<Text> task_, backend_;
};

std::string read_text(const std::string& path) {
  if (path.starts_with("http://") || path.starts_with("https://")) {
    throw UserError("--config {}: configuration files are read from disk; download it first", path);
  }
  try {
    return read_file(path);
  } catch (const EnvironmentError& e) {
    throw UserError("--config: {}", e.what());
  }
}

// Where a tab stands in the indentation of `line` or one before it: the parser then complains about
// something else.
std::optional<YAML::Mark> tab_before(const std::string& text, int line) {
  YAML::Mark mark;
  mark.line = mark.column = 0;
  bool indentation = true;
  for (char c : text) {
    if (indentation && c == '\t') return mark;
    if (c == '\n') {
      if (mark.line++ == line) return std::nullopt;
      mark.column = 0;
      indentation = true;
      continue;
    }
    indentation = indentation && c == ' ';
    ++mark.column;
  }
  return std::nullopt;
}

std::vector<YAML::Node> load(const std::string& path) {
  const std::string text = read_text(path);
  try {
    return YAML::LoadAll(text);
  } catch (const YAML::Exception& e) {
    if (const auto tab = tab_before(text, e.mark.line)) {
      throw UserError("{}:{}:{}: not readable as YAML: a tab in the indentation; use blanks", path,
                      tab->line + 1, tab->column + 1);
    }
    throw UserError("{}:{}:{}: not readable as YAML: {}", path, e.mark.line + 1, e.mark.column + 1,
                    e.msg);
  }
}

}  // namespace

void read_yaml(const std::string& path, Draft& draft) {
  const std::vector<YAML::Node> documents = load(path);
  if (documents.size() > 1)
    throw UserError("{}: holds {} documents; one is due", path, documents.size());
  if (documents.empty() || documents[0].IsNull())
    throw UserError("{}: the configuration file is empty", path);
  const YAML::Node& root = documents[0];
  if (!root.IsMap()) {
    throw UserError(
        "{}:{}:{}: the file must be a map of keys (task:, backend:, base_model:, ...), found {}",
        path, root.Mark().line + 1, root.Mark().column + 1, kind_name(root));
  }
  YamlReader(path, draft).read(root);
}

}  // namespace aitraining::config
