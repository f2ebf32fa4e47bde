#pragma once
// JSON as rows need it: keys in file order, a depth limit, and numbers that stand directly in a row kept as written.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace aitraining::data {

struct JsonProblem {
  size_t offset = 0;     // of the byte at which reading stopped
  std::string message;   // the parser's own words, without a position
};

struct JsonResult {
  nlohmann::ordered_json value;
  std::optional<JsonProblem> problem;
};

// `text_depth`: numbers that are direct values of an object at this depth (1: the outermost value) become strings with
// the characters of the file, 0: none. Deeper ones are numbers, since templates print them as Python would.
JsonResult parse_json(std::string_view text, int text_depth = 0);

}  // namespace aitraining::data
