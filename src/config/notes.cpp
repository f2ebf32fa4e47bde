#include <algorithm>

#include <fmt/format.h>

#include "aitraining/core/strings.h"
#include "draft.h"

namespace aitraining::config {
namespace {

bool given_by_user(const Draft& draft, std::string_view name) {
  const auto origin = draft.config.origins.find(std::string(name));
  return origin != draft.config.origins.end() && origin->second != Origin::environment;
}

void note_without_effect(Draft& draft, std::initializer_list<std::string_view> names,
                         std::string_view reason) {
  for (std::string_view name : names) {
    if (given_by_user(draft, name))
      draft.config.notes.push_back(fmt::format("{} has no effect: {}", name, reason));
  }
}

void note_evaluation(Draft& draft) {
  const TrainingParams& p = draft.config.params;
  if (!p.valid_split) {
    note_without_effect(draft, {"eval_strategy", "eval_steps"},
                        "there is no valid_split to evaluate on");
  } else if (p.eval_strategy != "steps") {
    note_without_effect(draft, {"eval_steps"}, "eval_strategy is not steps");
  }
}

void note_adapter(Draft& draft) {
  const TrainingParams& p = draft.config.params;
  if (!p.peft) {
    note_without_effect(
        draft,
        {"lora_r", "lora_alpha", "lora_dropout", "target_modules", "merge_adapter", "merge_dtype"},
        "it is used with --peft only");
  } else if (!p.merge_adapter) {
    note_without_effect(draft, {"merge_dtype"}, "the adapter is not merged");
  }
}

// In the reference's words.
void note_other_trainers(Draft& draft) {
  const TrainingParams& p = draft.config.params;
  if (!draft.field("trainer")) return;
  for (const Field* field : fields_of(draft.config.task)) {
    const Value value = get_value(p, *field);
    if (!given_by_user(draft, field->name) || field->used_by(p.trainer) || value == field->initial)
      continue;
    draft.config.notes.push_back(fmt::format(
        "Parameter '{}={}' is only used with trainer={}, but trainer={}. This parameter will be "
        "ignored.",
        field->name, value_text(*field, value), join(split(field->trainers, ','), " or "),
        p.trainer));
  }
}

}  // namespace

void add_notes(Draft& draft) {
  const TrainingParams& p = draft.config.params;
  note_other_trainers(draft);
  note_without_effect(draft, {"padding"}, "batches carry no padding");
  note_without_effect(draft, {"attn_implementation", "use_flash_attention_2"},
                      "the fastest exact kernel of the device is always used");
  note_evaluation(draft);
  if (p.save_strategy != "steps")
    note_without_effect(draft, {"save_steps"}, "save_strategy is not steps");
  if (p.save_strategy == "no")
    note_without_effect(draft, {"save_total_limit"}, "save_strategy is no");
  note_adapter(draft);
  note_without_effect(draft, {"token", "username", "repo_id", "hub_private"},
                      "this build does not upload to the Hub");
  note_without_effect(draft, {"wandb_token"}, "W&B logging is not in this build");
  if (p.log == "wandb") {
    draft.config.notes.emplace_back(
        "W&B logging is not in this build: metrics go to trainer_state.json");
  }
}

}  // namespace aitraining::config
