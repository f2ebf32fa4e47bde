#pragma once
// The text of the console sink, apart from where it goes: pure functions.
#include <string>
#include <utility>
#include <vector>

#include "aitraining/report/records.h"

namespace aitraining::report {

// As Python's repr writes a float: shortest digits that read back as the same number, "1.0",
// "3e-05", "nan".
std::string python_float(double value);
// Rounded first, so that a line stays readable: decimals after the point, or significant digits.
std::string rounded(double value, int decimals);
std::string significant(double value, int digits);

// {'loss': 1.2345, 'grad_norm': 0.98, 'learning_rate': 3e-05, 'epoch': 0.5, 'step': 10, ...}
// `seconds_left` below zero: not known, the key is left out.
std::string step_line(const StepRecord& record, double seconds_left);
std::string eval_line(const EvalRecord& record);
std::string end_line(const EndRecord& record);

// Two columns, the values aligned; a value of several lines goes on under its own column. Ends with
// a newline.
std::string summary_block(const std::vector<std::pair<std::string, std::string>>& lines);

}  // namespace aitraining::report
