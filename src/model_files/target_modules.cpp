#include "aitraining/model/target_modules.h"

#include <algorithm>
#include <regex>
#include <set>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"

namespace aitraining::model {
namespace {

std::string last_part(const std::string& module) { return module.substr(module.rfind('.') + 1); }

std::vector<std::string> short_names(const std::vector<std::string>& modules) {
  std::vector<std::string> names;
  for (const auto& module : modules) {
    const std::string name = last_part(module);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

bool is_list(const std::string& choice) {
  return choice.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_., '\"[]()\t") ==
             std::string::npos &&
         choice.find('(') == std::string::npos && choice.find(".*") == std::string::npos;
}

std::vector<bool> match_list(const std::string& choice, const std::vector<std::string>& modules) {
  if (std::count(choice.begin(), choice.end(), '[') != std::count(choice.begin(), choice.end(), ']')) {
    throw UserError("--target-modules '{}': a bracket is not closed. Write a list such as q_proj,v_proj; the model has: {}.",
                    choice, join(short_names(modules), ", "));
  }
  std::string plain;
  for (char c : choice) {
    if (std::string("[]'\"").find(c) == std::string::npos) plain += c;
  }
  std::vector<bool> matched(modules.size(), false);
  std::vector<std::string> unknown;
  for (const std::string& name : split(plain, ',')) {
    bool found = false;
    for (size_t i = 0; i < modules.size(); ++i) {
      const std::string& module = modules[i];
      const bool ends = module.size() > name.size() && module.ends_with("." + name);
      if (module == name || ends) matched[i] = found = true;
    }
    if (!found) unknown.push_back(name);
  }
  if (!unknown.empty()) {
    const auto names = short_names(modules);
    const auto near = nearest(unknown.front(), names);
    throw UserError("--target-modules {}: the model has no linear layer named {}{}. It has: {} (or all-linear).",
                    choice, join(unknown, ", "), near ? fmt::format(" (did you mean {}?)", *near) : "",
                    join(names, ", "));
  }
  return matched;
}

std::vector<bool> match_pattern(const std::string& choice, const std::vector<std::string>& modules) {
  std::vector<bool> matched;
  try {
    const std::regex pattern(choice, std::regex::ECMAScript);
    for (const auto& module : modules) matched.push_back(std::regex_match(module, pattern));
  } catch (const std::regex_error& e) {
    throw UserError("--target-modules {}: neither a list of layer names nor a regular expression ({}).", choice,
                    e.what());
  }
  return matched;
}

}  // namespace

std::vector<bool> match_target_modules(const std::string& choice_in, const std::vector<std::string>& modules) {
  const std::string choice(trim(choice_in));
  if (choice == "all-linear") return std::vector<bool>(modules.size(), true);
  auto matched = is_list(choice) ? match_list(choice, modules) : match_pattern(choice, modules);
  if (std::find(matched.begin(), matched.end(), true) == matched.end()) {
    throw UserError("--target-modules '{}' matches no linear layer. The model has: {} (or all-linear).", choice,
                    join(short_names(modules), ", "));
  }
  return matched;
}

}  // namespace aitraining::model
