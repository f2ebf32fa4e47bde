#pragma once
// How a field is shown in help, documentation and completion.
#include <string>
#include <vector>

#include "field_table.h"

namespace aitraining::config {

std::string placeholder(const Field& field);   // "INT", "bf16|fp16", "" for booleans
std::string default_text(const Field& field);  // "required", "unset", "3e-05"
// "--lr", and "--no-lr" where that exists.
std::vector<std::string> flag_spellings(const Field& field);

}  // namespace aitraining::config
