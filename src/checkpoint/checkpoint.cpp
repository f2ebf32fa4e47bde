#include "aitraining/checkpoint/checkpoint.h"

#include <algorithm>
#include <set>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/log.h"
#include "aitraining/core/strings.h"
#include "manifest.h"
#include "rank_files.h"

namespace aitraining::checkpoint {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPrefix = "checkpoint-";
constexpr const char* kState = "training_state.json";
constexpr const char* kOptimizer = "optimizer.safetensors";

std::optional<int64_t> checkpoint_number(const fs::path& folder) {
  const std::string name = folder.filename();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string digits = name.substr(std::string(kPrefix).size());
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoll(digits);
}

nlohmann::ordered_json state_json(const RunState& s) {
  return {{"version", 1},
          {"updates", s.updates},
          {"input_tokens_seen", s.input_tokens_seen},
          {"updates_per_epoch", s.updates_per_epoch},
          {"loss_sum", s.loss_sum},
          {"loss_weight", s.loss_weight},
          {"epoch", s.epoch},
          {"optimizer", s.optimizer},
          {"precision", s.precision},
          {"data", s.data},
          {"base", s.base},
          {"lora_alpha", s.lora_alpha},
          {"batch", s.batch}};
}

RunState state_from_json(const nlohmann::ordered_json& j) {
  RunState s;
  s.updates = j.at("updates");
  s.input_tokens_seen = j.at("input_tokens_seen");
  s.updates_per_epoch = j.at("updates_per_epoch");
  s.loss_sum = j.at("loss_sum");
  s.loss_weight = j.at("loss_weight");
  s.epoch = j.at("epoch");
  s.optimizer = j.at("optimizer");
  s.precision = j.at("precision");
  s.batch = j.at("batch");
  s.data = j.at("data");
  s.base = j.at("base");
  s.lora_alpha = j.at("lora_alpha");
  return s;
}

// Moments by parameter name, and fp32 masters where the saved model is rounded: any engine with any number of ranks
// reads its own ranges from this.
void write_optimizer(const SavingRanks& ranks, const fs::path& folder, bool masters) {
  std::vector<format::PlannedTensor> plan;
  for (const auto& group : ranks.engine.chain().groups) {
    if (!group->trainable()) continue;
    for (const auto& param : group->params()) {
      if (masters) plan.push_back({"master." + param.name, format::DType::f32, param.shape});
      if (!ranks.engine.has_moments()) continue;
      plan.push_back({"exp_avg." + param.name, format::DType::f32, param.shape});
      plan.push_back({"exp_avg_sq." + param.name, format::DType::f32, param.shape});
    }
  }
  RankFiles files(ranks, {{folder / kOptimizer, plan}});
  ranks.visit([&](const engine::StateRange& range) {
    if (!range.group->trainable()) return;
    if (masters) files.write("master." + range.param->name, range.first, range.weight);
    if (!range.exp_avg.defined()) return;
    files.write("exp_avg." + range.param->name, range.first, range.exp_avg);
    files.write("exp_avg_sq." + range.param->name, range.first, range.exp_avg_sq);
  });
  files.finish();
}

// The limit counts the newest ones by time of writing: numbers of an earlier run in the same folder do not matter.
void remove_old_checkpoints(const SaveRequest& request, const fs::path& newest) {
  if (request.total_limit <= 0) return;
  std::vector<std::pair<fs::file_time_type, fs::path>> others;
  for (const auto& entry : fs::directory_iterator(request.project)) {
    if (!entry.is_directory() || !checkpoint_number(entry.path()) || entry.path() == newest) continue;
    if (request.best && entry.path().filename() == *request.best) continue;
    // A folder of that name which no run of ours has made stays.
    if (!fs::exists(entry.path() / kManifest)) continue;
    others.emplace_back(entry.last_write_time(), entry.path());
  }
  std::sort(others.rbegin(), others.rend());
  for (size_t i = static_cast<size_t>(request.total_limit) - 1; i < others.size(); ++i) {
    fs::remove_all(others[i].second);
  }
}

// The last steps, by one rank: what makes the folder a checkpoint.
void publish_checkpoint(const SaveRequest& request, const fs::path& aside, const fs::path& target) {
  write_file_atomic(aside / "trainer_state.json", request.state.trainer_state.dump(2) + "\n");
  write_file_atomic(aside / kState, state_json(request.state).dump(2) + "\n");
  write_manifest(aside);
  sync_folder(aside);
  // A folder of this number can only be left from an earlier run: it gives way to the whole new one.
  fs::remove_all(target);
  rename_synced(aside, target);
  remove_old_checkpoints(request, target);
}

}  // namespace

fs::path save_checkpoint(const SavingRanks& ranks, const SaveRequest& request, const ModelParts& parts) {
  const fs::path target = request.project / fmt::format("{}{}", kPrefix, request.state.updates);
  const fs::path aside = request.project / fmt::format(".tmp-{}{}", kPrefix, request.state.updates);
  try {
    if (ranks.first()) {
      fs::remove_all(aside);
      fs::create_directories(aside);
      write_model_description(aside, parts, request.dtype);
    }
    ranks.group.barrier();
    if (parts.decoder.lora()) {
      write_adapter(ranks, aside, parts.decoder, request.base_model);
    } else {
      write_weights(ranks, aside, request.dtype);
    }
    const bool rounded = !parts.decoder.lora() && request.dtype != format::DType::f32;
    write_optimizer(ranks, aside, rounded);
    if (ranks.first()) publish_checkpoint(request, aside, target);
    ranks.group.barrier();
  } catch (...) {
    std::error_code ignored;
    if (ranks.first()) fs::remove_all(aside, ignored);
    throw;
  }
  return target;
}

std::vector<fs::path> list_checkpoints(const fs::path& project, std::vector<std::string>* notes) {
  std::vector<std::pair<int64_t, fs::path>> found;
  if (!fs::is_directory(project)) return {};
  for (const auto& entry : fs::directory_iterator(project)) {
    const auto number = checkpoint_number(entry.path());
    if (!entry.is_directory() || !number) continue;
    if (const auto problem = check_manifest(entry.path())) {
      if (notes) notes->push_back(fmt::format("{} is skipped: {}", entry.path().string(), *problem));
      continue;
    }
    found.emplace_back(*number, entry.path());
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> folders;
  for (auto& [number, path] : found) folders.push_back(path);
  return folders;
}

std::optional<fs::path> resolve_resume(const std::string& choice, const fs::path& project,
                                       std::vector<std::string>& notes) {
  const std::string word = to_lower(choice);
  if (word == "auto" || word == "true" || word == "latest") {
    const size_t before = notes.size();
    const auto folders = list_checkpoints(project, &notes);
    if (!folders.empty()) return folders.back();
    if (notes.size() > before) {
      throw UserError("--resume-from-checkpoint {}: none of the {} checkpoint(s) in {} is whole: {}. Give the path of a good "
                      "one, or move these away to start fresh.", choice, notes.size() - before, project.string(),
                      notes[before]);
    }
    notes.push_back(fmt::format("resume_from_checkpoint='{}' but no checkpoints found in {}. Starting fresh.", choice,
                                project.string()));
    return std::nullopt;
  }
  const fs::path folder = fs::absolute(choice);
  if (!fs::is_directory(folder)) {
    throw UserError("--resume-from-checkpoint {}: there is no such folder. Give a checkpoint-N folder, or auto for the "
                    "newest one in {}.", folder.string(), project.string());
  }
  if (!fs::exists(folder / kManifest) && !checkpoint_number(folder) && !list_checkpoints(folder).empty()) {
    throw UserError("--resume-from-checkpoint {}: this is a project folder; give one of its checkpoint-N folders, for "
                    "example {}.", folder.string(), list_checkpoints(folder).back().string());
  }
  return folder;
}

Checkpoint::Checkpoint(fs::path folder) : folder_(std::move(folder)) {
  if (const auto problem = check_manifest(folder_)) {
    throw UserError("checkpoint {} cannot be resumed: {}.", folder_.string(), *problem);
  }
  try {
    state_ = state_from_json(nlohmann::ordered_json::parse(read_file(folder_ / kState)));
    state_.trainer_state = nlohmann::ordered_json::parse(read_file(folder_ / "trainer_state.json"));
  } catch (const nlohmann::json::exception& e) {
    throw UserError("checkpoint {} cannot be resumed: {} ({}).", folder_.string(), kState, e.what());
  }
  adapter_ = fs::exists(folder_ / "adapter_model.safetensors");
  weights_ = format::open_safetensors(adapter_ ? folder_ / "adapter_model.safetensors" : folder_);
  optimizer_ = format::open_safetensors(folder_ / kOptimizer);
}

ops::ParameterReader Checkpoint::reader(const std::string& prefix) const {
  auto moments = optimizer_, weights = weights_;
  const std::string folder = folder_.string();
  return [=](const ops::ParamSpec& param, int64_t first, at::Tensor out) {
    const format::TensorStore* store = moments.get();
    auto it = store->tensors().find(prefix + param.name);
    if (it == store->tensors().end() && prefix == "master.") {
      store = weights.get();
      it = store->tensors().find(param.name);
    }
    if (it == store->tensors().end()) {
      throw UserError("checkpoint {} has no {}{}: it was made with other settings (--peft, --target-modules, --optimizer "
                      "or model).", folder, prefix, param.name);
    }
    if (it->second.shape != param.shape) {
      throw UserError("checkpoint {}: {} has another shape than in this run (--lora-r or model changed).", folder,
                      param.name);
    }
    store->read_f32(it->second, first, out.numel(), out.data_ptr<float>());
    store->release_pages();
  };
}

void Checkpoint::check_all_used(const ops::Chain& chain) const {
  std::set<std::string> known;
  for (const auto& group : chain.groups) {
    for (const auto& param : group->params()) known.insert(param.name);
  }
  std::vector<std::string> unused;
  for (const auto& [name, info] : weights_->tensors()) {
    if (!known.contains(name)) unused.push_back(name);
  }
  if (unused.empty()) return;
  throw UserError("checkpoint {} holds {} trained tensor(s) that this run has no place for, the first {}: the model or "
                  "{} is another one than when it was saved. Resume with the same, or start fresh without "
                  "--resume-from-checkpoint.", folder_.string(), unused.size(), unused.front(),
                  adapter_ ? "--target-modules" : "its tied embeddings");
}

ops::ParameterReader Checkpoint::weights() const { return reader("master."); }
ops::ParameterReader Checkpoint::exp_avg() const { return reader("exp_avg."); }
ops::ParameterReader Checkpoint::exp_avg_sq() const { return reader("exp_avg_sq."); }

}  // namespace aitraining::checkpoint
