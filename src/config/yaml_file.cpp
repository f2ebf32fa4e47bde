#include "yaml_file.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "config_source.h"
#include "references.h"
#include "yaml_schema.h"
#include "yaml_text.h"

namespace aitraining::config {
namespace {

const char* kind_name(const YAML::Node& node) {
  return node.IsMap()        ? "a map"
         : node.IsSequence() ? "a list"
         : node.IsNull()     ? "nothing"
                             : "a single value";
}

Place place_at(const std::string& file, const YAML::Mark& mark, const std::string& key) {
  return {{Origin::file, fmt::format("{}:{}", file, mark.line + 1)}, at(file, mark) + ": " + key};
}

// The environment's secrets may only reach fields that are never written or printed.
bool holds_secret(const std::string& variable) {
  return std::ranges::any_of(field_table(), [&](const Field& field) {
    return field.secret && field.environment == variable;
  });
}

class YamlReader {
 public:
  YamlReader(const YamlFile& file, Draft& draft)
      : file_(file.name), task_(draft.config.task), draft_(draft) {}

  void read_section(const YAML::Node& node, const YamlSection& section, YAML::Mark mark) {
    if (node.IsNull()) return;
    if (!node.IsMap()) {
      return problem(
          mark, fmt::format("{}: a map of keys is due, found {}", section.path, kind_name(node)));
    }
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
        problem(key.Mark(),
                fmt::format("'{}' is given twice: lines {} and {}",
                            inner_path(section, key.Scalar()), seen->second, key.Mark().line + 1));
        continue;
      }
      read_entry(section, key, value);
    }
  }

 private:
  void problem(const YAML::Mark& mark, const std::string& text) {
    draft_.problems.push_back(at(file_, mark) + ": " + text);
  }

  void read_entry(const YamlSection& section, const YAML::Node& key, const YAML::Node& value) {
    const std::string& name = key.Scalar();
    if (std::ranges::count(section.words, name)) return check_word(name, key, value);
    if (std::ranges::count(section.sections, name))
      return read_section(value, *yaml_section(task_, inner_path(section, name)), key.Mark());
    const Field* field = section.field(name);
    if (!field) return problem(key.Mark(), unknown_yaml_key(task_, section, name));
    assign(*field, inner_path(section, name), key.Mark(), value);
  }

  void check_word(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    if (!value.IsScalar())
      problem(key.Mark(), fmt::format("{}: a word is due, found {}", name, kind_name(value)));
  }

  void assign(const Field& field, const std::string& name, YAML::Mark key,
              const YAML::Node& value) {
    const Place place = place_at(file_, value.IsNull() ? key : value.Mark(), name);
    const auto [seen, fresh] = labels_.emplace(field.name, place.label);
    if (!fresh)
      return problem(key, fmt::format("{} is given twice: also at {}", name, seen->second));
    if (value.IsNull())
      return draft_.record(field, place, assign_null(draft_.config.params, field));
    if (value.IsScalar()) return assign_expanded(field, place, {value.Scalar()});
    if (field.list && value.IsSequence()) return assign_list(field, place, value);
    if (field.map() && value.IsMap()) return assign_pairs(field, place, value);
    draft_.record(field, place,
                  fmt::format("{} is due, found {}", type_name(field), kind_name(value)));
  }

  void assign_list(const Field& field, const Place& place, const YAML::Node& list) {
    std::vector<std::string> parts;
    for (const auto& part : list) {
      if (!part.IsScalar()) {
        return draft_.record(field, place,
                             fmt::format("texts are due, found {} in it", kind_name(part)));
      }
      parts.push_back(part.Scalar());
    }
    assign_expanded(field, place, parts);
  }

  void assign_pairs(const Field& field, const Place& place, const YAML::Node& map) {
    StringMap pairs;
    for (const auto& entry : map) {
      const YAML::Node key = entry.first, value = entry.second;
      if (!key.IsScalar() || !value.IsScalar())
        return draft_.record(field, place, "texts are due as keys and values");
      if (!pairs.emplace(key.Scalar(), value.Scalar()).second)
        return draft_.record(field, place, fmt::format("'{}' is given twice", key.Scalar()));
    }
    draft_.record(field, place, assign_map(draft_.config.params, field, pairs));
  }

  // ${NAME} stands for the environment's value, so that a file can be shared without what is
  // private in it.
  void assign_expanded(const Field& field, Place place, const std::vector<std::string>& parts) {
    const Expanded value = expand_references(join(parts, ","));
    if (value.names.empty()) return draft_.assign(field, value.text, place);
    const std::string names = join(value.names, ", ");
    if (!value.problem.empty()) return draft_.record(field, place, value.problem);
    for (const std::string& name : value.names) {
      if (field.secret || !holds_secret(name)) continue;
      return draft_.record(
          field, place,
          fmt::format("{} holds a secret, and this value would be written to files", name));
    }
    place.source = {Origin::environment, fmt::format("{} ({})", names, place.source.place)};
    std::string wrong = assign_text(draft_.config.params, field, value.text);
    // The value itself is the environment's: it is not repeated.
    if (!wrong.empty()) wrong = fmt::format("the value of {} is not {}", names, type_name(field));
    draft_.record(field, place, wrong);
  }

  std::string file_;
  Task task_;
  Draft& draft_;
  std::map<std::string_view, std::string> labels_;  // fields of this file
};

}  // namespace

std::optional<YamlWord> YamlFile::word(const std::string& key) const {
  for (const auto& entry : root) {
    if (!entry.first.IsScalar() || entry.first.Scalar() != key || !entry.second.IsScalar())
      continue;
    const YAML::Mark mark = entry.second.Mark();
    return YamlWord{entry.second.Scalar(), at(name, mark), place_at(name, mark, key)};
  }
  return std::nullopt;
}

YamlFile load_yaml(const std::string& path) {
  const std::string name = shown_name(path);
  const YAML::Node root = parse_yaml(name, read_config_text(path));
  if (root.IsNull()) throw UserError("{}:1:1: the configuration file is empty", name);
  if (!root.IsMap()) {
    throw UserError(
        "{}: the file must be a map of keys (task:, backend:, base_model:, ...), found {}",
        at(name, root.Mark()), kind_name(root));
  }
  return {name, root};
}

void apply_yaml(const YamlFile& file, Draft& draft) {
  const YamlSection& top = *yaml_section(draft.config.task, "");
  YamlReader(file, draft).read_section(file.root, top, file.root.Mark());
}

}  // namespace aitraining::config
