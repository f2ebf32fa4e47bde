#pragma once
// Giving a field its value from text or JSON. Each returns what is wrong with the value, or an
// empty text.
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "field_table.h"

namespace aitraining::config {

std::string assign_text(TrainingParams& params, const Field& field, std::string_view text);
std::string assign_null(TrainingParams& params, const Field& field);
std::string assign_map(TrainingParams& params, const Field& field, const StringMap& map);
std::string assign_json(TrainingParams& params, const Field& field,
                        const nlohmann::ordered_json& value);
nlohmann::ordered_json to_json_value(const Value& value);

enum class Fault { none, wrong, missing, unsupported };
struct Verdict {
  Fault fault = Fault::none;
  std::string text{};  // missing: a whole sentence; else what is wrong with the value
};
// The value that a field holds now: choices, range, and whether this build can do it.
Verdict check_value(const TrainingParams& params, const Field& field);

// "not supported yet in this build: <name> (<what to do>)", for a field that is not available.
std::string unavailable_text(const Field& field);

}  // namespace aitraining::config
