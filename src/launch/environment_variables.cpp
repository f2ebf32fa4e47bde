#include "environment_variables.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace aitraining::launch {
namespace {

constexpr std::string_view kRelevant[] = {"AITRAINING_",
                                          "AUTOTRAIN_",
                                          "ACCELERATE_",
                                          "CUDA_",
                                          "NCCL_",
                                          "GLOO_",
                                          "TORCH_",
                                          "PYTORCH_",
                                          "HF_",
                                          "WANDB_",
                                          "OMP_",
                                          "MKL_",
                                          "KMP_",
                                          "MASTER_",
                                          "RANK",
                                          "LOCAL_RANK",
                                          "WORLD_SIZE",
                                          "LOCAL_WORLD_SIZE",
                                          "SLURM_",
                                          "NVIDIA_VISIBLE_DEVICES",
                                          "LD_LIBRARY_PATH",
                                          "LD_PRELOAD",
                                          "VIRTUAL_ENV",
                                          "CONDA_PREFIX"};
constexpr std::string_view kSecret[] = {"TOKEN",  "KEY",        "SECRET", "PASSWORD",
                                        "PASSWD", "CREDENTIAL", "AUTH"};
constexpr size_t kLongest = 160;  // of a value that is shown
constexpr size_t kMost = 64;      // variables

}  // namespace

bool is_secret_variable(const std::string& name) {
  // AUTOTRAIN_... is no authorisation.
  std::string rest = name;
  if (rest.starts_with("AUTOTRAIN_")) rest = rest.substr(10);
  return std::ranges::any_of(
      kSecret, [&](std::string_view word) { return rest.find(word) != std::string::npos; });
}

nlohmann::ordered_json relevant_variables(char** environment) {
  std::map<std::string, std::string> sorted;
  for (char** entry = environment; entry && *entry; ++entry) {
    const std::string text(*entry);
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (std::ranges::any_of(kRelevant,
                            [&](std::string_view start) { return name.starts_with(start); }))
      sorted[name] = equals == std::string::npos ? "" : text.substr(equals + 1);
  }
  nlohmann::ordered_json shown = nlohmann::ordered_json::object();
  for (auto& [name, value] : sorted) {
    if (shown.size() == kMost) break;
    if (value.size() > kLongest) value = value.substr(0, kLongest) + "...";
    shown[name] = is_secret_variable(name) && !value.empty() ? "***" : value;
  }
  return shown;
}

}  // namespace aitraining::launch
