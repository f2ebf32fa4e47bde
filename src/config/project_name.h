#pragma once
#include <string>

namespace aitraining::config {

// What is wrong with the last component of a project path; empty: nothing.
std::string project_name_problem(const std::string& project_name);

}  // namespace aitraining::config
