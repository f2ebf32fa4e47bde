#include "memory.h"
#include "resident.h"
#include "session.h"

#include <algorithm>
#include <malloc.h>

#include "aitraining/comm/preflight.h"
#include "aitraining/core/error.h"
#include "aitraining/core/log.h"
#include "aitraining/core/phase.h"
#include "aitraining/core/strings.h"
#include "aitraining/objective/objective.h"

namespace aitraining::app {
namespace fs = std::filesystem;

Session::Session(config::TrainingParams params, launch::RankEnvironment rank)
    : params_(std::move(params)), rank_(std::move(rank)), project_(config::project_folder(params_)),
      device_(choose_device()) {}

c10::Device Session::choose_device() const {
  if (params_.device == "cuda") return c10::Device(at::kCUDA, static_cast<c10::DeviceIndex>(rank_.local_rank));
  return at::kCPU;
}

void Session::run() {
  open_inputs();
  build_engine();
  resume();
  train();
}

void Session::open_inputs() {
  enter_phase("reading the data");
  source_ = std::make_unique<model::ModelSource>(model::open_model(params_.model));
  assets_ = std::make_unique<text::TextAssets>(text::open_text_assets(params_.model));
  if (!params_.apply_chat_template || params_.chat_template == "none") {
    text::choose_chat_template(*assets_, "none");
  } else if (params_.chat_template) {
    text::choose_chat_template(*assets_, *params_.chat_template);
  }
  limit_ = length_limit(params_, source_->config, assets_->model_max_length);
  if (first_rank()) {
    for (const auto& note : source_->notes) log::info("{}", note);
    log::info("rows are cut at {} tokens ({})", limit_.tokens, limit_.reason);
  }
  train_ = std::make_unique<data::PreparedSplit>(prepare(params_.train_split, "training"));
  if (params_.valid_split) valid_ = std::make_unique<data::PreparedSplit>(prepare(*params_.valid_split, "validation"));
  check_vocabulary();
  describe_inputs();
}

data::PreparedSplit Session::prepare(const std::string& split, const std::string& word) {
  const auto file = data::find_split(params_.data_path, split);
  const auto rows = data::read_rows(file);
  auto options = sft_options(params_, limit_.tokens, source_->config.vocab_size);
  options.max_length_reason = limit_.reason;
  // Validation takes a fifth of max_samples, as the reference does.
  if (word == "validation" && options.max_samples > 0) {
    options.max_samples = std::max<int64_t>(1, options.max_samples / 5);
  }
  auto prepared = data::prepare_sft(file, rows, *assets_, options, word);
  if (first_rank()) {
    for (const auto& note : prepared.report.notes) log::info("{}", note);
  }
  return prepared;
}

// Token ids that the model has no row for: full fine-tuning grows the vocabulary, an adapter cannot.
void Session::check_vocabulary() {
  const int64_t highest = std::max({train_->report.max_id, valid_ ? valid_->report.max_id : -1,
                                    assets_->tokenizer.size() - 1});
  const int64_t rows = source_->config.vocab_size;
  if (highest < rows) return;
  const int64_t used = std::max(train_->report.max_id, valid_ ? valid_->report.max_id : -1);
  if (params_.peft) {
    if (used < rows) return;
    throw UserError("the data uses token ids up to {}, but the model's embedding has {} rows (ids 0 to {}). With --peft "
                    "the embedding is frozen and cannot grow: train without --peft, or use the tokenizer that belongs "
                    "to the model.", used, rows, rows - 1);
  }
  source_->config.vocab_size = highest + 1;
  if (first_rank()) {
    log::info("vocabulary grows from {} to {} rows; new rows begin as the mean of the old ones", rows, highest + 1);
  }
}

void Session::build_engine() {
  enter_phase("loading the model");
  decoder_ = std::make_unique<model::Decoder>(source_->config, lora_options(params_));
  enter_phase("meeting the other ranks");
  auto meeting = group_options(params_, rank_, device_);
  if (rank_.world_size > 1) {
    // Machines read their own copies: they must be the same.
    meeting.settings.emplace_back("weights of the base model", base_fingerprint_);
    meeting.settings.emplace_back("training data", data_description_);
  }
  group_ = comm::make_process_group(meeting);
  enter_phase("loading the model");
  const std::string& backend = meeting.backend;
  log::info("rank={} world={} device={} backend={} threads={}", rank_.rank, rank_.world_size, device_.str(), backend,
            at::get_num_threads());
  if (params_.preflight == "quick" && group_->size() > 1) preflight();
  auto options = engine_options(params_, backend, device_);
  options.resident_units = resident_units(options);
  engine_ = std::make_unique<engine::Engine>(decoder_->chain(), *group_, options);
  shared_folder_ = checkpoint::folder_is_shared(project_, *group_);
  if (!shared_folder_ && first_rank()) {
    log::info("the ranks do not share {}: everything that is saved goes through rank 0", project_.string());
  }
  engine_->load(model::base_reader(*source_), [](const ops::ParamGroup& g) { return g.name() != "adapters"; });
  engine_->load(model::adapter_initialiser(static_cast<uint64_t>(params_.seed)),
                [](const ops::ParamGroup& g) { return g.name() == "adapters"; });
}

// All ranks measure, the first one tells.
void Session::preflight() const {
  enter_phase("checking the connections");
  const auto found = comm::check_connections(*group_, rank_.local_world_size, std::chrono::seconds(30));
  if (!first_rank()) return;
  log::info("{}", found.line());
  for (const auto& pair : found.slow_pairs()) log::warn("slow connection: {}", pair);
}

void Session::resume() {
  enter_phase("resuming");
  std::vector<std::string> notes;
  std::optional<fs::path> folder;
  if (params_.resume_from_checkpoint) {
    folder = checkpoint::resolve_resume(*params_.resume_from_checkpoint, project_, notes);
  } else if (first_rank() && !checkpoint::list_checkpoints(project_).empty()) {
    notes.push_back(fmt::format("{} holds checkpoints of an earlier run. This run starts fresh and replaces them as its "
                                "own are saved; to go on with the earlier run use --resume-from-checkpoint auto.",
                                project_.string()));
  }
  if (first_rank()) {
    for (const auto& note : notes) log::info("{}", note);
  }
  if (!folder) return;
  resumed_.emplace(*folder);
  const auto& state = resumed_->state();
  if (resumed_->has_adapter() != params_.peft) {
    throw UserError("checkpoint {} was made {} --peft, this run is {} it.", folder->string(),
                    resumed_->has_adapter() ? "with" : "without", params_.peft ? "with" : "without");
  }
  check_resumed();
  engine_->load(resumed_->weights(), [](const ops::ParamGroup& g) { return g.trainable(); });
  engine_->load_optimizer(resumed_->exp_avg(), resumed_->exp_avg_sq(), state.updates);
  start_ = {state.updates, state.input_tokens_seen, state.loss_sum, state.loss_weight};
  trainer_state_.restore(state.trainer_state);
  if (first_rank()) log::info("resuming from {} (update {})", folder->string(), state.updates);
}

// Units that stay whole: a number, or as many as fit beside what the engine needs, the same on every rank.
int64_t Session::resident_units(const engine::EngineOptions& options) const {
  if (options.sharding != engine::Sharding::parameters) return 0;
  const auto units = static_cast<int64_t>(decoder_->chain().units.size());
  if (params_.zero3_resident != "auto") return std::min<int64_t>(std::stoll(params_.zero3_resident), units);
  const auto mine = units_that_fit(decoder_->chain(), options, rank_, free_memory(device_, rank_.local_world_size));
  return -static_cast<int64_t>(group_->max(-static_cast<double>(mine)));
}

// Rows are dealt out by their place in the epoch: only the number of rows in an update and the seed change what follows.
void Session::compare_with_resumed() const {
  const auto& state = resumed_->state();
  if (state.updates >= trainer_->total_updates()) {
    throw UserError("checkpoint {} is at update {}, and this run has {} in all ({} epochs): there is nothing left to do. "
                    "Raise --epochs, or use the model as it is.", resumed_->folder().string(), state.updates,
                    trainer_->total_updates(), params_.epochs);
  }
  if (!first_rank()) return;
  const auto now = nlohmann::ordered_json::parse(batch_json(params_, rank_));
  for (const auto& [key, word] : {std::pair{"global_batch", "number of rows per update"}, std::pair{"seed", "seed"}}) {
    if (state.batch.value(key, nlohmann::ordered_json()) == now[key]) continue;
    log::warn("the batch settings differ from the checkpoint's: {} was {}, is {} now; the order or size of updates changes "
              "from here on", word, state.batch.value(key, nlohmann::ordered_json()).dump(), now[key].dump());
  }
}

// What must be as it was is an error, what may change is said.
void Session::check_resumed() const {
  const auto& state = resumed_->state();
  const std::string folder = resumed_->folder().string();
  resumed_->check_all_used(decoder_->chain());
  if (params_.peft && state.lora_alpha != static_cast<double>(params_.lora_alpha)) {
    throw UserError("checkpoint {} was made with --lora-alpha {}, this run has {}: the same adapter would be scaled "
                    "differently.", folder, state.lora_alpha, params_.lora_alpha);
  }
  if (params_.peft && state.base != base_fingerprint_) {
    throw UserError("checkpoint {} holds an adapter to another base model than {}.", folder, params_.model);
  }
  if (!first_rank()) return;
  auto changed = [](const char* what, const std::string& then, const std::string& now) {
    if (then != now) log::warn("resuming with another {} than the checkpoint's: {} then, {} now", what, then, now);
  };
  changed("optimizer", state.optimizer, params_.optimizer);
  changed("precision", state.precision, params_.mixed_precision.value_or("fp32"));
  changed("training data", state.data, data_description_);
}

// Of the base: a hash of the first numbers of every tensor, which any fine-tuning changes.
void Session::describe_inputs() {
  uint64_t tokens = 0, weights = 0;
  for (int64_t row = 0; row < train_->rows.size(); ++row) {
    const auto ids = train_->rows.ids(row);
    tokens = hash64(ids.data(), ids.size_bytes(), tokens);
  }
  data_description_ = fmt::format("{} rows with {} tokens, hash {:016x}", train_->rows.size(),
                                  train_->rows.total_tokens(), tokens);
  for (const auto& [name, info] : source_->tensors->tensors()) {
    std::vector<float> begin(static_cast<size_t>(std::min<int64_t>(32, info.elements())));
    source_->tensors->read_f32(info, 0, static_cast<int64_t>(begin.size()), begin.data());
    weights = hash64(begin.data(), begin.size() * sizeof(float), hash64(name.data(), name.size(), weights));
  }
  source_->tensors->release_pages();
  base_fingerprint_ = fmt::format("{:016x}", weights);
}

train::Split Session::split_items(const data::PreparedSplit& prepared) const {
  train::Split split;
  split.rows = &prepared.rows;
  split.items = params_.packing.value_or(false) ? data::pack_rows(prepared.rows, limit_.tokens)
                                                : data::single_rows(prepared.rows);
  return split;
}

train::TrainerHooks Session::hooks() {
  return {[this](ops::Batch& batch) { decoder_->add_rope(batch); },
          [this](const train::Progress& progress, double epoch) { save(progress, epoch); },
          [this](const report::EvalRecord& record, int64_t update) { evaluated(record, update); }};
}

void Session::train() {
  const auto objective = objective::make_sft_objective();
  auto split = split_items(*train_);
  std::optional<train::Split> valid;
  if (valid_) valid = split_items(*valid_);
  const auto options = trainer_options(params_, rank_.world_size, train_->report.rows_read,
                                       valid_ ? valid_->report.rows_read : 0);
  std::vector<report::Sink*> sinks;
  if (first_rank()) {
    console_ = report::make_console_sink();
    sinks = {console_.get(), &trainer_state_};
  }
  trainer_ = std::make_unique<train::Trainer>(*engine_, *objective, *group_, std::move(split), std::move(valid),
                                              options, hooks(), sinks);
  if (resumed_) compare_with_resumed();
  const int64_t total = trainer_->total_updates();
  const auto warmup = train::warmup_updates(params_.warmup_ratio, total);
  if (first_rank() && total == 1 && train::learning_rate(options.schedule, 1.0, 1, 1, warmup) == 0) {
    log::warn("the only update of this run has learning rate 0 (warm-up starts at 0), so nothing is trained: add rows or "
              "--epochs, lower --gradient-accumulation, or use --warmup-ratio 0");
  }
  if (first_rank()) {
    const auto lines = summary(*trainer_);
    for (auto* sink : sinks) sink->on_start(lines);
    for (const auto& [label, value] : lines.lines) log::debug("{}: {}", label, value);
  }
  const auto end = trainer_->run(start_);
  load_best();
  finish(end);
}

void Session::evaluated(const report::EvalRecord& record, int64_t) {
  last_eval_ = record.loss;
  candidate_loss_ = record.loss;
}

void Session::save(const train::Progress& progress, double epoch) {
  enter_phase(fmt::format("saving checkpoint-{}", progress.updates));
  const bool better = candidate_loss_ && (!best_loss_ || *candidate_loss_ < *best_loss_);
  if (better) {
    best_loss_ = candidate_loss_;
    best_checkpoint_ = fmt::format("checkpoint-{}", progress.updates);
    best_update_ = progress.updates;
    trainer_state_.set_best(*best_loss_, (project_ / *best_checkpoint_).string());
  }
  candidate_loss_.reset();
  checkpoint::SaveRequest request;
  request.project = project_;
  request.state = {progress.updates, progress.input_tokens_seen,
                   trainer_->total_updates() / std::max<int64_t>(1, params_.epochs), progress.loss_sum,
                   progress.loss_weight, epoch, params_.optimizer, params_.mixed_precision.value_or("fp32"),
                   data_description_, params_.peft ? base_fingerprint_ : "", static_cast<double>(params_.lora_alpha),
                   nlohmann::ordered_json::parse(batch_json(params_, rank_)),
                   trainer_state_.to_json(progress.updates, epoch)};
  request.base_model = params_.model;
  request.dtype = training_dtype(params_);
  request.total_limit = params_.save_total_limit;
  request.best = best_checkpoint_;
  const auto folder = checkpoint::save_checkpoint(saving_ranks(), request, parts());
  if (first_rank()) log::info("saved {}", folder.string());
}

// As the reference does with a validation split: the saved model is the best of those that were saved.
void Session::load_best() {
  if (!best_checkpoint_ || best_update_ == engine_->updates_done()) return;
  const checkpoint::Checkpoint best(project_ / *best_checkpoint_);
  engine_->load(best.weights(), [](const ops::ParamGroup& g) { return g.trainable(); });
  if (first_rank()) {
    log::info("loaded the weights of {} (best eval_loss {:.6f}) for the final model", best.folder().string(),
              *best_loss_);
  }
}

}  // namespace aitraining::app
