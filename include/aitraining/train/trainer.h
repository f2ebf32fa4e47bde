#pragma once
// The loop. See docs/architecture.md for the walk from here down.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "aitraining/data/batch.h"
#include "aitraining/data/plan.h"
#include "aitraining/engine/engine.h"
#include "aitraining/objective/objective.h"
#include "aitraining/report/records.h"
#include "aitraining/train/schedule.h"

namespace aitraining::train {

struct Split {
  const data::TokenizedRows* rows = nullptr;
  std::vector<data::Item> items;  // single rows or packs
};

struct TrainerOptions {
  enum class Strategy { no, epoch, steps };
  int64_t epochs = 1;
  data::BatchShape shape;
  uint64_t seed = 42;
  double peak_rate = 3e-5, warmup_ratio = 0.1;
  ScheduleKind schedule = ScheduleKind::linear;
  int64_t logging_steps = 1;
  Strategy eval = Strategy::epoch, save = Strategy::epoch;
  int64_t eval_steps = 500, save_steps = 500;
  bool check_replicas = false;
};

// Where a run stands: all that a checkpoint must hold besides weights and optimizer state.
struct Progress {
  int64_t updates = 0;              // done, over all epochs
  int64_t input_tokens_seen = 0;    // all ranks
  double loss_sum = 0, loss_weight = 0;  // over the whole run
};

// What the trainer asks of the outside; every function is called on all ranks at the same point.
struct TrainerHooks {
  std::function<void(ops::Batch&)> complete_batch;                    // adds what the model needs (rotary tables)
  std::function<void(const Progress&, double epoch)> save;            // a checkpoint is due
  std::function<void(const report::EvalRecord&, int64_t)> evaluated;  // on every rank, before a save at that update
};

class Trainer {
 public:
  Trainer(engine::Engine& engine, const objective::Objective& objective, comm::ProcessGroup& group, Split train,
          std::optional<Split> valid, TrainerOptions options, TrainerHooks hooks, std::vector<report::Sink*> sinks);

  int64_t total_updates() const { return total_updates_; }
  // Trains from `start` to the end. NumericError when updates stay non-finite. Collective.
  report::EndRecord run(Progress start);
  report::EvalRecord evaluate();
  // A micro-batch on the device. `pass` (the epoch) is part of the key of dropout masks; training: dropout is on.
  ops::Batch make_batch(const data::MicroBatch& micro, uint64_t pass, bool training) const;

 private:
  struct Interval {                 // what was not logged yet
    double loss_sum = 0, loss_weight = 0;
    int64_t input_tokens = 0;
    double seconds = 0;
  };
  struct Update {
    double loss_sum = 0, weight = 0;
    int64_t input_tokens = 0, trained_tokens = 0;
    engine::UpdateResult result;
    double rate = 0;
  };
  Update train_update(const data::EpochPlan& plan, int64_t update_in_epoch, int64_t epoch);
  std::vector<data::MicroBatch> collect(const data::EpochPlan& plan, int64_t update) const;
  void after_update(const Update& update, bool epoch_ends);
  void guard_finite(const Update& update);
  void log_interval(const Update& update);
  std::optional<std::string> replica_checksum();
  double epoch_now() const;
  bool due(TrainerOptions::Strategy strategy, int64_t steps, bool epoch_ends) const;

  engine::Engine& engine_;
  const objective::Objective& objective_;
  comm::ProcessGroup& group_;
  Split train_;
  std::optional<Split> valid_;
  TrainerOptions options_;
  TrainerHooks hooks_;
  std::vector<report::Sink*> sinks_;   // empty on ranks other than 0
  int64_t updates_per_epoch_ = 0, total_updates_ = 0;
  Progress progress_;
  Interval interval_;
  std::optional<std::string> checksum_;
  int64_t skipped_in_a_row_ = 0;
};

}  // namespace aitraining::train
