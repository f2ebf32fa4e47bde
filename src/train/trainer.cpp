#include "aitraining/train/trainer.h"

#include <chrono>
#include <cmath>

#include "aitraining/core/error.h"
#include "aitraining/core/log.h"
#include "aitraining/core/phase.h"
#include "aitraining/core/strings.h"
#include "aitraining/ops/kernels.h"

namespace aitraining::train {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A run that cannot recover must not go on for hours: this many non-finite updates in a row end it.
constexpr int64_t kMostSkipped = 5;

at::Tensor to_tensor(const std::vector<int32_t>& values, c10::Device device) {
  auto host = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), host.data_ptr<int64_t>());
  return host.to(device);
}

}  // namespace

Trainer::Trainer(engine::Engine& engine, const objective::Objective& objective, comm::ProcessGroup& group, Split train,
                 std::optional<Split> valid, TrainerOptions options, TrainerHooks hooks,
                 std::vector<report::Sink*> sinks)
    : engine_(engine), objective_(objective), group_(group), train_(std::move(train)), valid_(std::move(valid)),
      options_(options), hooks_(std::move(hooks)), sinks_(std::move(sinks)) {
  updates_per_epoch_ = data::updates_per_epoch(static_cast<int64_t>(train_.items.size()), options_.shape);
  total_updates_ = updates_per_epoch_ * options_.epochs;
}

report::EndRecord Trainer::run(Progress start) {
  progress_ = start;
  const auto began = Clock::now();
  report::EndRecord end;
  for (int64_t epoch = progress_.updates / updates_per_epoch_; epoch < options_.epochs; ++epoch) {
    const data::EpochPlan plan(static_cast<int64_t>(train_.items.size()), options_.seed, epoch, options_.shape, true);
    for (int64_t u = progress_.updates - epoch * updates_per_epoch_; u < updates_per_epoch_; ++u) {
      const auto update_began = Clock::now();
      const Update update = train_update(plan, u, epoch);
      interval_.seconds += seconds_since(update_began);
      if (end.seconds_to_first_step == 0) end.seconds_to_first_step = seconds_since(began);
      after_update(update, u + 1 == updates_per_epoch_);
    }
  }
  end.steps = progress_.updates;
  end.epoch = epoch_now();
  end.seconds = seconds_since(began);
  end.train_loss = progress_.loss_weight > 0 ? objective_.loss(progress_.loss_sum, progress_.loss_weight) : 0;
  const auto updates_run = static_cast<double>(progress_.updates - start.updates);
  end.steps_per_second = updates_run / end.seconds;
  end.samples_per_second = updates_run / static_cast<double>(updates_per_epoch_) *
                           static_cast<double>(train_.rows->size()) / end.seconds;
  end.num_input_tokens_seen = progress_.input_tokens_seen;
  end.tokens_per_second = static_cast<double>(progress_.input_tokens_seen - start.input_tokens_seen) / end.seconds;
  end.peak_memory_bytes = report::peak_resident_bytes();
  for (auto* sink : sinks_) sink->on_end(end);
  return end;
}

std::vector<data::MicroBatch> Trainer::collect(const data::EpochPlan& plan, int64_t update) const {
  std::vector<data::MicroBatch> micros;
  for (int64_t m = 0; m < plan.micro_batches(update); ++m) {
    std::vector<data::Item> items;
    for (int64_t index : plan.items(update, m, group_.rank())) items.push_back(train_.items[index]);
    micros.push_back(data::collate(*train_.rows, items));
  }
  return micros;
}

Trainer::Update Trainer::train_update(const data::EpochPlan& plan, int64_t update_in_epoch, int64_t epoch) {
  enter_phase(fmt::format("update {}", progress_.updates + 1));
  Update update;
  const auto micros = collect(plan, update_in_epoch);
  double weight = 0;
  for (const auto& micro : micros) {
    weight += objective_.weight(micro.num_labels());
    update.trained_tokens += micro.num_labels();
    update.input_tokens += micro.num_tokens();
  }
  const auto totals = group_.sum({weight, static_cast<double>(update.trained_tokens),
                                  static_cast<double>(update.input_tokens)});
  update.weight = totals[0];
  update.trained_tokens = static_cast<int64_t>(totals[1]);
  update.input_tokens = static_cast<int64_t>(totals[2]);
  AIT_CHECK(update.weight > 0, "an update without trained tokens");

  engine_.begin_update();
  for (size_t m = 0; m < micros.size(); ++m) {
    const bool last = m + 1 == micros.size();
    if (micros[m].num_labels() == 0) {
      engine_.micro_step(nullptr, last);
      continue;
    }
    auto batch = make_batch(micros[m], static_cast<uint64_t>(epoch), true);
    objective_.prepare(batch, update.weight);
    update.loss_sum += engine_.micro_step(&batch, last);
  }
  update.rate = learning_rate(options_.schedule, options_.peak_rate, progress_.updates + 1, total_updates_,
                              warmup_updates(options_.warmup_ratio, total_updates_));
  update.result = engine_.finish_update(update.rate);
  update.loss_sum = group_.sum({update.loss_sum})[0];
  return update;
}

ops::Batch Trainer::make_batch(const data::MicroBatch& micro, uint64_t pass, bool training) const {
  const c10::Device device = engine_.options().device;
  ops::Batch batch;
  batch.tokens = to_tensor(micro.tokens, device);
  batch.positions = to_tensor(micro.positions, device);
  batch.labels = to_tensor(micro.label, device);
  batch.label_rows = to_tensor(micro.label_row, device);
  batch.training = training;
  auto keys = at::empty({micro.num_tokens()}, at::kLong);
  auto* key = keys.data_ptr<int64_t>();
  int64_t token = 0;
  batch.segment_begin.push_back(0);
  for (size_t s = 0; s < micro.segment_length.size(); ++s) {
    const auto sample = static_cast<uint64_t>(micro.segment_sample[s]);
    for (int64_t i = 0; i < micro.segment_length[s]; ++i) {
      key[token++] = ops::kernels::mix_key(options_.seed, pass, sample, static_cast<uint64_t>(i));
    }
    batch.segment_begin.push_back(token);
  }
  batch.row_keys = keys.to(device);
  hooks_.complete_batch(batch);
  return batch;
}

void Trainer::guard_finite(const Update& update) {
  if (!update.result.skipped) {
    skipped_in_a_row_ = 0;
    return;
  }
  log::warn("update {}: the gradient is not finite (norm {}, loss {}); no rank changed its weights",
            progress_.updates, update.result.grad_norm, objective_.loss(update.loss_sum, update.weight));
  if (++skipped_in_a_row_ >= kMostSkipped) {
    throw NumericError(
        "[train] {} updates in a row had gradients that are not finite (last: update {}, loss {}). Lower --lr (now {}), "
        "or train in fp32 (without --mixed-precision).",
        kMostSkipped, progress_.updates, objective_.loss(update.loss_sum, update.weight), options_.peak_rate);
  }
}

void Trainer::after_update(const Update& update, bool epoch_ends) {
  ++progress_.updates;
  progress_.input_tokens_seen += update.input_tokens;
  guard_finite(update);
  if (!update.result.skipped) {
    progress_.loss_sum += update.loss_sum;
    progress_.loss_weight += update.weight;
  }
  interval_.loss_sum += update.loss_sum;
  interval_.loss_weight += update.weight;
  interval_.input_tokens += update.input_tokens;
  if (options_.check_replicas) checksum_ = replica_checksum();
  log_interval(update);
  if (valid_ && due(options_.eval, options_.eval_steps, epoch_ends)) {
    const auto record = evaluate();
    for (auto* sink : sinks_) sink->on_eval(record);
    hooks_.evaluated(record, progress_.updates);
  }
  if (due(options_.save, options_.save_steps, epoch_ends)) hooks_.save(progress_, epoch_now());
}

bool Trainer::due(TrainerOptions::Strategy strategy, int64_t steps, bool epoch_ends) const {
  if (strategy == TrainerOptions::Strategy::epoch) return epoch_ends;
  return strategy == TrainerOptions::Strategy::steps && progress_.updates % steps == 0;
}

void Trainer::log_interval(const Update& update) {
  if (sinks_.empty()) {
    if (progress_.updates % options_.logging_steps == 0) interval_ = {};
    return;
  }
  report::StepRecord record;
  record.step = progress_.updates;
  record.epoch = epoch_now();
  record.loss = objective_.loss(interval_.loss_sum, interval_.loss_weight);
  record.grad_norm = update.result.grad_norm;
  record.learning_rate = update.rate;
  record.num_trained_tokens = static_cast<int64_t>(interval_.loss_weight);
  record.num_input_tokens_seen = progress_.input_tokens_seen;
  record.tokens_per_second = static_cast<double>(interval_.input_tokens) / interval_.seconds;
  record.memory_bytes = report::resident_bytes();
  record.weights_checksum = checksum_;
  for (auto* sink : sinks_) sink->on_update(progress_.updates, record);
  if (progress_.updates % options_.logging_steps != 0 && progress_.updates != total_updates_) return;
  for (auto* sink : sinks_) sink->on_step(record);
  interval_ = {};
}

// The halves of the hash travel as doubles, which hold 32-bit integers exactly.
std::optional<std::string> Trainer::replica_checksum() {
  const auto found = engine_.weights_checksum();
  if (!found) return std::nullopt;
  const uint64_t sum = *found;
  const auto high = static_cast<double>(sum >> 32), low = static_cast<double>(sum & 0xffffffffu);
  // All ranks take part in every one of these, whatever the one before showed.
  const double most_high = group_.max(high), least_high = -group_.max(-high);
  const double most_low = group_.max(low), least_low = -group_.max(-low);
  const bool same = most_high == high && least_high == high && most_low == low && least_low == low;
  const double differing = group_.sum({same ? 0.0 : 1.0})[0];
  if (differing > 0) {
    throw BugError("[train] update {}: weights differ between ranks ({} of {} ranks see another checksum)",
                   progress_.updates, differing, group_.size());
  }
  return fmt::format("{:016x}", sum);
}

double Trainer::epoch_now() const {
  return static_cast<double>(progress_.updates) / static_cast<double>(updates_per_epoch_);
}

report::EvalRecord Trainer::evaluate() {
  enter_phase("evaluation");
  const auto began = Clock::now();
  report::EvalRecord record;
  record.step = progress_.updates;
  record.epoch = epoch_now();
  data::BatchShape shape = options_.shape;
  shape.accumulation = 1;
  const data::EpochPlan plan(static_cast<int64_t>(valid_->items.size()), 0, 0, shape, false);
  double sum = 0, weight = 0;
  for (int64_t u = 0; u < plan.updates(); ++u) {
    std::vector<data::Item> items;
    for (int64_t index : plan.items(u, 0, group_.rank())) items.push_back(valid_->items[index]);
    const auto micro = data::collate(*valid_->rows, items);
    weight += objective_.weight(micro.num_labels());
    if (micro.num_labels() == 0) {
      engine_.evaluate(nullptr);
      continue;
    }
    auto batch = make_batch(micro, 0, false);
    sum += engine_.evaluate(&batch);
  }
  const auto totals = group_.sum({sum, weight});
  if (totals[1] > 0) record.loss = objective_.loss(totals[0], totals[1]);
  record.num_tokens = static_cast<int64_t>(totals[1]);
  record.seconds = seconds_since(began);
  return record;
}

}  // namespace aitraining::train
