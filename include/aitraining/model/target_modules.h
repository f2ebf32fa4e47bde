#pragma once
#include <string>
#include <vector>

namespace aitraining::model {

// Which of `modules` (full names) an adapter goes on, in their order. UserError when none matches or a listed name is
// not there.
std::vector<bool> match_target_modules(const std::string& choice, const std::vector<std::string>& modules);

}  // namespace aitraining::model
