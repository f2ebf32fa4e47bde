#pragma once
// The parts of the field table, one function per group of parameters.
#include <vector>

#include "field_table.h"

namespace aitraining::config::table {

std::vector<Field> basic_fields();
std::vector<Field> data_fields();
std::vector<Field> conversion_fields();
std::vector<Field> run_fields();
std::vector<Field> engine_fields();
std::vector<Field> hyperparameter_fields();
std::vector<Field> peft_fields();
std::vector<Field> preference_fields();
std::vector<Field> distillation_fields();
std::vector<Field> sweep_fields();
std::vector<Field> evaluation_fields();
std::vector<Field> ppo_fields();
std::vector<Field> grpo_fields();
std::vector<Field> advanced_fields();
std::vector<Field> sampling_fields();
std::vector<Field> inference_fields();
std::vector<Field> launcher_fields();
std::vector<Field> hub_fields();
std::vector<Field> seq2seq_fields();
std::vector<Field> vlm_fields();

}  // namespace aitraining::config::table
