#pragma once
// One configuration file. Several are applied left to right, each over the ones before.
#include <optional>
#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "draft.h"

namespace aitraining::config {

struct YamlWord {
  std::string text;
  std::string at;  // "run.yaml:1:7"
  Place place;
};

struct YamlFile {
  std::string name;  // for messages
  YAML::Node root;   // a map

  std::optional<YamlWord> word(const std::string& key) const;  // "task", "backend"
};

// From disk or a URL. UserError with file and line when it is no YAML map.
YamlFile load_yaml(const std::string& path);

// Takes every field of the file; what is wrong goes to the draft. `task` and `backend` are only
// checked to be words: what they say concerns all files together.
void apply_yaml(const YamlFile& file, Draft& draft);

}  // namespace aitraining::config
