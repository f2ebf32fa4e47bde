#pragma once
// JSON from files that nobody vouches for: nesting is limited, doubled keys are refused, text must be UTF-8.
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace aitraining::format {

// `origin` (usually the path) begins every message. All failures are UserError.
nlohmann::ordered_json parse_strict_json(std::string_view text, const std::string& origin, int max_depth = 64);
// The same with keys in alphabetical order, for objects of any number of keys.
nlohmann::json parse_strict_json_sorted(std::string_view text, const std::string& origin, int max_depth = 64);

// A name out of a foreign file, made fit for one line of a message: control characters replaced, length limited.
std::string printable(std::string_view text);

}  // namespace aitraining::format
