#include "field_table.h"

#include <algorithm>
#include <array>

#include "aitraining/config/config.h"
#include "aitraining/core/strings.h"
#include "table/parts.h"

namespace aitraining::config {
namespace {

std::vector<Field> all_fields() {
  using namespace table;
  std::vector<Field> all;
  for (auto* part : {basic_fields,     data_fields,       conversion_fields,
                     run_fields,       engine_fields,     hyperparameter_fields,
                     peft_fields,      preference_fields, distillation_fields,
                     sweep_fields,     evaluation_fields, ppo_fields,
                     grpo_fields,      advanced_fields,   sampling_fields,
                     inference_fields, launcher_fields,   hub_fields,
                     seq2seq_fields,   vlm_fields}) {
    for (Field& field : part()) all.push_back(std::move(field));
  }
  return all;
}

std::vector<const Field*> select(Task task) {
  std::vector<const Field*> chosen;
  for (const Field& field : field_table()) {
    if (field.tasks.contains(task)) chosen.push_back(&field);
  }
  // Rows of one group stand together, in the order of the table.
  std::ranges::stable_sort(chosen, {}, [](const Field* field) { return field->group; });
  return chosen;
}

}  // namespace

const std::vector<Field>& field_table() {
  static const std::vector<Field> table = all_fields();
  return table;
}

std::span<const Field* const> fields_of(Task task) {
  static const std::array<std::vector<const Field*>, std::size(kTasks)> chosen{
      select(Task::llm), select(Task::seq2seq), select(Task::vlm)};
  return chosen[static_cast<size_t>(task)];
}

const Field* find_field(std::string_view name, Task task) {
  for (const Field* field : fields_of(task)) {
    if (field->name == name) return field;
  }
  return nullptr;
}

std::vector<Task> tasks_with_field(std::string_view name) {
  std::vector<Task> found;
  for (Task task : kTasks) {
    if (find_field(name, task)) found.push_back(task);
  }
  return found;
}

bool Field::used_by(std::string_view trainer) const {
  if (trainers == "all") return true;
  return std::ranges::count(split(trainers, ','), trainer) > 0;
}

TrainingParams default_params(Task task) {
  TrainingParams params;
  // Fields of other tasks hold their own defaults, so that no member is left without a meaning.
  for (const Field& field : field_table()) set_value(params, field, field.initial);
  for (const Field* field : fields_of(task)) set_value(params, *field, field->initial);
  return params;
}

std::string_view group_title(Group group) {
  static constexpr std::string_view kTitles[kGroupCount] = {"Basic",
                                                            "Data Processing",
                                                            "Training Configuration",
                                                            "Training Hyperparameters",
                                                            "SFT Training",
                                                            "PEFT/LoRA",
                                                            "DPO/ORPO",
                                                            "Knowledge Distillation",
                                                            "Hyperparameter Sweep",
                                                            "Enhanced Evaluation",
                                                            "Reinforcement Learning (PPO)",
                                                            "Reinforcement Learning (GRPO)",
                                                            "Advanced Features",
                                                            "Inference",
                                                            "Launcher",
                                                            "Hub Integration",
                                                            "Other"};
  return kTitles[static_cast<size_t>(group)];
}

std::string flag_name(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::string parameter_name(std::string_view flag) {
  std::string name(flag.substr(0, flag.find('=')));
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace aitraining::config
