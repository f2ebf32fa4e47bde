#pragma once
// Metric records and the sinks that take them. Plain structs: sinks know nothing of the trainer. Rank 0 only.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace aitraining::report {

// Shown once before the first step.
struct RunSummary {
  std::vector<std::pair<std::string, std::string>> lines{};  // label, value, in the order of printing
  int64_t total_updates = 0, num_epochs = 1, train_rows = 0;
  int64_t batch_size = 0, logging_steps = 1, save_steps = 0;
  std::string project_path{};
};

// One logging interval.
struct StepRecord {
  int64_t step = 0;                  // updates done, from 1
  double epoch = 0;
  double loss = 0;                   // mean over the trained tokens of the interval
  double grad_norm = 0;              // of the interval's last update, before clipping
  double learning_rate = 0;          // used in the interval's last update
  int64_t num_trained_tokens = 0;    // of the interval, all ranks
  int64_t num_input_tokens_seen = 0; // since the start, all ranks
  double tokens_per_second = 0;      // input tokens, all ranks, over the interval
  uint64_t memory_bytes = 0;         // resident (CPU) or allocated (GPU) peak of this rank
  std::optional<std::string> weights_checksum{};  // hex, with --check-replicas
};

struct EvalRecord {
  int64_t step = 0;
  double epoch = 0;
  std::optional<double> loss{};      // none: no trained token in the validation split
  int64_t num_tokens = 0;            // trained tokens
  double seconds = 0;
};

struct EndRecord {
  int64_t steps = 0;
  double epoch = 0, seconds = 0, train_loss = 0, samples_per_second = 0, steps_per_second = 0, tokens_per_second = 0;
  int64_t num_input_tokens_seen = 0;
  uint64_t peak_memory_bytes = 0;
  double seconds_to_first_step = 0;
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void on_start(const RunSummary&) {}
  virtual void on_update(int64_t step, const StepRecord& running) {}  // every update: for a progress bar
  virtual void on_step(const StepRecord&) {}                          // every logging interval
  virtual void on_eval(const EvalRecord&) {}
  virtual void on_end(const EndRecord&) {}
};

// Progress bar on a terminal, plain lines when piped: {'loss': ..., 'grad_norm': ..., 'learning_rate': ..., 'epoch': ...}
// with step, tokens/s, memory and time left. Writes to standard output.
std::unique_ptr<Sink> make_console_sink();

// Hugging Face's trainer_state.json: global_step, epoch, max_steps, num_train_epochs, logging_steps, log_history (one
// record per StepRecord and EvalRecord, full precision), best_metric, best_model_checkpoint, ...
class TrainerState : public Sink {
 public:
  void on_start(const RunSummary& summary) override;
  void on_step(const StepRecord& record) override;
  void on_eval(const EvalRecord& record) override;
  void on_end(const EndRecord& record) override;
  void set_best(double metric, const std::string& checkpoint);
  std::optional<double> best_metric() const { return best_metric_; }
  nlohmann::ordered_json to_json(int64_t global_step, double epoch) const;
  void restore(const nlohmann::ordered_json& state);  // from a checkpoint: log_history, best metric

 private:
  RunSummary summary_;
  nlohmann::ordered_json history_ = nlohmann::ordered_json::array();
  std::optional<double> best_metric_;
  std::string best_checkpoint_;
};

// README.md of the project folder (Hugging Face model card).
struct ModelCard {
  std::string title, base_model, trainer, dataset, license_note;
  bool base_is_local = true, dataset_is_local = true, peft = false, merged = false;
  std::vector<std::pair<std::string, std::string>> table;  // rows: Base Model, Trainer, Epochs, Learning Rate, ...
  std::optional<double> train_loss, eval_loss;
  std::string version;
};
std::string render_model_card(const ModelCard& card);

// Resident set of this process now, and its peak, in bytes.
uint64_t resident_bytes();
uint64_t peak_resident_bytes();

}  // namespace aitraining::report
