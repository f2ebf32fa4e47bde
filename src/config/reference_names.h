#pragma once
// Names that the reference knows and this build does not (yet).
#include <span>
#include <string_view>

namespace aitraining::config {

bool is_reference_parameter(std::string_view name);     // snake_case
bool is_reference_command_flag(std::string_view name);  // snake_case
bool is_reference_command(std::string_view name);
std::span<const std::string_view> reference_parameters();

}  // namespace aitraining::config
