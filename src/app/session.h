#pragma once
// One rank's run: what it is made of, in the order in which it is made.
#include <filesystem>
#include <memory>
#include <optional>

#include "aitraining/checkpoint/checkpoint.h"
#include "aitraining/comm/process_group.h"
#include "aitraining/config/config.h"
#include "aitraining/data/sft.h"
#include "aitraining/engine/engine.h"
#include "aitraining/launch/launch.h"
#include "aitraining/model/decoder.h"
#include "aitraining/report/records.h"
#include "aitraining/text/assets.h"
#include "aitraining/train/trainer.h"
#include "settings.h"

namespace aitraining::app {

class Session {
 public:
  Session(config::TrainingParams params, launch::RankEnvironment rank);
  // The whole run; returns normally when it is done. Errors are thrown as core's four kinds.
  void run();

 private:
  bool first_rank() const { return rank_.rank == 0; }
  c10::Device choose_device() const;
  void open_inputs();        // model description, tokenizer, rows: user errors come from here
  data::PreparedSplit prepare(const std::string& split, const std::string& word);
  void check_vocabulary();
  void build_engine();       // process group, decoder, weights
  void preflight() const;
  void check_resumed() const;
  void compare_with_resumed() const;
  void describe_inputs();
  void resume();
  void train();
  train::Split split_items(const data::PreparedSplit& prepared) const;
  train::TrainerHooks hooks();
  void save(const train::Progress& progress, double epoch);
  void evaluated(const report::EvalRecord& record, int64_t update);
  void load_best();
  void finish(const report::EndRecord& end);
  std::filesystem::path begin_model(format::DType dtype) const;
  std::string sharding_line() const;
  void publish_model(const std::filesystem::path& aside) const;
  int64_t resident_units(const engine::EngineOptions& options) const;
  bool merge_and_check(const std::filesystem::path& aside);
  bool save_final_model();
  void save_adapter();
  checkpoint::SavingRanks saving_ranks() const { return {*engine_, *group_, shared_folder_}; }
  void report_files(const report::EndRecord& end) const;
  double mean_loss_of_sample();
  report::RunSummary summary(const train::Trainer& trainer) const;
  report::ModelCard model_card(bool merged) const;
  checkpoint::ModelParts parts() const { return {*source_, *decoder_, *assets_}; }
  const data::PreparedSplit& checked_split() const { return valid_ ? *valid_ : *train_; }

  config::TrainingParams params_;
  launch::RankEnvironment rank_;
  std::filesystem::path project_;
  c10::Device device_;
  bool shared_folder_ = true;  // the ranks see one project folder
  // What must be equal on all machines and is written into checkpoints; found once, it takes a pass over the tokens.
  std::string data_description_, base_fingerprint_;
  std::unique_ptr<model::ModelSource> source_;
  std::unique_ptr<text::TextAssets> assets_;
  data::LengthLimit limit_;
  std::unique_ptr<data::PreparedSplit> train_, valid_;
  std::unique_ptr<comm::ProcessGroup> group_;
  std::unique_ptr<model::Decoder> decoder_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<train::Trainer> trainer_;
  std::unique_ptr<report::Sink> console_;
  report::TrainerState trainer_state_;
  train::Progress start_;
  std::optional<checkpoint::Checkpoint> resumed_;
  // Best evaluation that has a checkpoint: `save` at the same update makes one of the candidate.
  std::optional<double> best_loss_, candidate_loss_;
  std::optional<std::string> best_checkpoint_;
  int64_t best_update_ = 0;
  std::optional<double> last_eval_;
};

// Words of the summary that the user reads: why this precision, what each split holds.
std::string precision_line(const config::TrainingParams& params, c10::Device device);
std::string engine_line(const engine::EngineOptions& options, int ranks);
std::string split_line(const data::PreparedSplit& split);

}  // namespace aitraining::app
