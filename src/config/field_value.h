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
std::string assign_json(TrainingParams& params, const Field& field,
                        const nlohmann::ordered_json& value);
nlohmann::ordered_json to_json_value(const Value& value);

// Choices and range of the value that a field holds now.
std::string check_value(const TrainingParams& params, const Field& field);

}  // namespace aitraining::config
