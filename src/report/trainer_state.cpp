#include "aitraining/core/error.h"
#include "aitraining/report/records.h"

namespace aitraining::report {

using nlohmann::ordered_json;

void TrainerState::on_start(const RunSummary& summary) { summary_ = summary; }

void TrainerState::on_step(const StepRecord& record) {
  ordered_json entry{{"step", record.step},
                     {"epoch", record.epoch},
                     {"loss", record.loss},
                     {"grad_norm", record.grad_norm},
                     {"learning_rate", record.learning_rate},
                     {"num_trained_tokens", record.num_trained_tokens},
                     {"num_input_tokens_seen", record.num_input_tokens_seen}};
  if (record.weights_checksum) entry["weights_checksum"] = *record.weights_checksum;
  history_.push_back(std::move(entry));
}

void TrainerState::on_eval(const EvalRecord& record) {
  ordered_json entry{{"step", record.step}, {"epoch", record.epoch}};
  if (record.loss) {
    entry["eval_loss"] = *record.loss;
  } else {
    entry["eval_note"] = "no tokens";
  }
  entry["eval_runtime"] = record.seconds;
  history_.push_back(std::move(entry));
}

void TrainerState::on_end(const EndRecord& record) {
  history_.push_back(ordered_json{{"step", record.steps},
                                  {"epoch", record.epoch},
                                  {"train_loss", record.train_loss},
                                  {"train_runtime", record.seconds},
                                  {"train_samples_per_second", record.samples_per_second},
                                  {"train_steps_per_second", record.steps_per_second},
                                  {"num_input_tokens_seen", record.num_input_tokens_seen}});
}

void TrainerState::set_best(double metric, const std::string& checkpoint) {
  best_metric_ = metric;
  best_checkpoint_ = checkpoint;
}

namespace {

int64_t last_tokens_seen(const ordered_json& history) {
  for (auto entry = history.rbegin(); entry != history.rend(); ++entry) {
    if (entry->contains("num_input_tokens_seen"))
      return entry->at("num_input_tokens_seen").get<int64_t>();
  }
  return 0;
}

}  // namespace

// Only keys that Hugging Face's TrainerState knows: it refuses others when it reads the file.
ordered_json TrainerState::to_json(int64_t global_step, double epoch) const {
  ordered_json state;
  state["best_metric"] = best_metric_ ? ordered_json(*best_metric_) : ordered_json(nullptr);
  state["best_model_checkpoint"] =
      best_checkpoint_.empty() ? ordered_json(nullptr) : ordered_json(best_checkpoint_);
  state["epoch"] = epoch;
  state["global_step"] = global_step;
  state["is_hyper_param_search"] = false;
  state["is_local_process_zero"] = true;
  state["is_world_process_zero"] = true;
  state["log_history"] = history_;
  state["logging_steps"] = summary_.logging_steps;
  state["max_steps"] = summary_.total_updates;
  state["num_input_tokens_seen"] = last_tokens_seen(history_);
  state["num_train_epochs"] = summary_.num_epochs;
  state["save_steps"] = summary_.save_steps;
  state["train_batch_size"] = summary_.batch_size;
  return state;
}

void TrainerState::restore(const ordered_json& state) {
  const auto wrong = [](const char* key, const char* wanted) {
    return UserError(
        "[checkpoint] trainer_state.json: key '{}' is not {}; take another checkpoint.", key,
        wanted);
  };
  const auto history = state.find("log_history");
  if (history == state.end() || !history->is_array())
    throw wrong("log_history", "a list of records");
  for (const ordered_json& entry : *history) {
    if (!entry.is_object()) throw wrong("log_history", "a list of records");
  }
  const ordered_json metric = state.value("best_metric", ordered_json(nullptr));
  const ordered_json checkpoint = state.value("best_model_checkpoint", ordered_json(nullptr));
  if (!metric.is_null() && !metric.is_number()) throw wrong("best_metric", "a number or null");
  if (!checkpoint.is_null() && !checkpoint.is_string())
    throw wrong("best_model_checkpoint", "text or null");
  history_ = *history;
  best_metric_ = metric.is_null() ? std::nullopt : std::optional<double>(metric.get<double>());
  best_checkpoint_ = checkpoint.is_null() ? "" : checkpoint.get<std::string>();
}

}  // namespace aitraining::report
