// What stands in the project folder when a run is done.
#include <cmath>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/log.h"
#include "aitraining/core/phase.h"
#include "aitraining/core/strings.h"
#include "session.h"

namespace aitraining::app {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kCheckedRows = 4;

// Largest relative difference of the mean loss that rounding the merged weights to `dtype` explains.
double merge_tolerance(format::DType dtype) { return dtype == format::DType::f32 ? 1e-4 : 2e-2; }

}  // namespace

// Mean loss over a few real rows, with the weights as they stand and without dropout.
double Session::mean_loss_of_sample() {
  const auto& rows = checked_split().rows;
  double sum = 0, count = 0;
  for (int64_t i = 0; i < std::min(kCheckedRows, rows.size()); ++i) {
    const data::Item item{i};
    auto batch = trainer_->make_batch(data::collate(rows, std::span(&item, 1)), 0, false);
    sum += engine_->evaluate(&batch);
    count += static_cast<double>(batch.num_labels());
  }
  return count > 0 ? sum / count : 0;
}

// The final model is written aside and moved when it is whole: a full disk leaves neither a cut file nor half a change.
fs::path Session::begin_model(format::DType dtype) const {
  const fs::path aside = project_ / ".tmp-model";
  if (first_rank()) {
    fs::remove_all(aside);
    fs::create_directories(aside);
    write_model_description(aside, parts(), dtype);
  }
  group_->barrier();
  return aside;
}

void Session::publish_model(const fs::path& aside) const {
  checkpoint::remove_stale_model_files(project_, false);
  for (const auto& entry : fs::recursive_directory_iterator(aside)) {
    if (!entry.is_regular_file()) continue;
    const fs::path target = project_ / fs::relative(entry.path(), aside);
    fs::create_directories(target.parent_path());
    fs::rename(entry.path(), target);
  }
  fs::remove_all(aside);
  sync_folder(project_);
}

// Writes the merged model, reads the file back in place of base and adapter, and compares losses on real rows. All
// ranks evaluate the same rows.
bool Session::merge_and_check(const fs::path& aside) {
  if (first_rank()) log::info("Merging adapter weights...");
  const auto dtype = merge_dtype(params_);
  const double before = shared_folder_ ? mean_loss_of_sample() : 0;
  checkpoint::write_merged_weights(saving_ranks(), aside, *decoder_, dtype, model::base_reader(*source_));
  if (!shared_folder_) {
    if (first_rank()) log::info("the merged model's loss is not compared: only rank 0 can read the file");
    return true;
  }
  model::ModelSource merged = *source_;
  merged.tensors = format::open_safetensors(aside);
  engine_->load(model::base_reader(merged), [](const ops::ParamGroup& g) { return g.name() != "adapters"; });
  engine_->load([](const ops::ParamSpec&, int64_t, at::Tensor out) { out.zero_(); },
                [](const ops::ParamGroup& g) { return g.name() == "adapters"; });
  const double after = group_->max(mean_loss_of_sample());
  const double difference = std::abs(after - before) / std::max(1e-6, std::abs(before));
  const bool good = group_->max(difference <= merge_tolerance(dtype) ? 0 : 1) == 0;
  if (!first_rank()) return good;
  if (!good) {
    log::warn("Failed to merge adapter weights: on real rows the merged model's loss is {:.6f}, base + adapter's {:.6f}",
              after, before);
    log::warn("Skipping adapter merge. Only adapter weights will be saved.");
  } else {
    log::info("merged model checked on real rows: loss {:.6f}, base + adapter {:.6f}", after, before);
  }
  return good;
}

// Returns whether the project folder's model is whole (not an adapter alone).
bool Session::save_final_model() {
  if (params_.peft && !params_.merge_adapter) return false;
  const fs::path aside = begin_model(params_.peft ? merge_dtype(params_) : training_dtype(params_));
  try {
    bool whole = true;
    if (params_.peft) {
      whole = merge_and_check(aside);
    } else {
      checkpoint::write_weights(saving_ranks(), aside, training_dtype(params_));
    }
    // No rank reads the file any more when it is moved or removed.
    group_->barrier();
    if (first_rank() && whole) publish_model(aside);
    if (first_rank()) fs::remove_all(aside);
    return whole;
  } catch (...) {
    std::error_code ignored;
    if (first_rank()) fs::remove_all(aside, ignored);
    throw;
  }
}

void Session::save_adapter() {
  const fs::path folder = project_ / "adapter";
  if (first_rank()) fs::create_directories(folder);
  group_->barrier();
  checkpoint::write_adapter(saving_ranks(), folder, *decoder_, params_.model);
  if (first_rank()) checkpoint::write_text_files(folder, *assets_);
}

void Session::finish(const report::EndRecord& end) {
  enter_phase("saving the model");
  if (first_rank()) log::info("Finished training, saving model...");
  if (params_.peft) save_adapter();
  const bool whole = save_final_model();
  if (first_rank()) {
    if (!whole) {
      // The adapter as PEFT lays it out, at the top too. Its files, not the engine: a refused merge has overwritten that.
      checkpoint::remove_stale_model_files(project_, true);
      fs::copy(project_ / "adapter", project_, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    }
    write_file_atomic(project_ / "trainer_state.json", trainer_state_.to_json(end.steps, end.epoch).dump(2) + "\n");
    auto card = model_card(params_.peft && whole);
    card.train_loss = end.train_loss;
    write_file_atomic(project_ / "README.md", report::render_model_card(card));
    report_files(end);
  }
  group_->barrier();
}

void Session::report_files(const report::EndRecord& end) const {
  log::info("============================================================");
  log::info("✓ Training completed successfully!");
  log::info("train_loss {:.6f}{} after {} updates in {}", end.train_loss,
            last_eval_ ? fmt::format(", last eval_loss {:.6f}", *last_eval_) : "", end.steps,
            human_duration(end.seconds));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(project_)) {
    if (!entry.is_regular_file() || entry.path().filename().string().starts_with(".")) continue;
    names.push_back(fmt::format("{} ({})", entry.path().filename().string(), human_bytes(entry.file_size())));
  }
  std::sort(names.begin(), names.end());
  log::info("files: {}", join(names, ", "));
  log::info("Model saved to: {}", project_.string());
}

}  // namespace aitraining::app
