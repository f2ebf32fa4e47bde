// The executable links no LibTorch; a process that trains loads it, and the training library after
// it, by name.
#include <dlfcn.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "aitraining/app/run_rank.h"
#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/launch/launch.h"
#include "torch_library.h"

namespace aitraining::launch {
namespace fs = std::filesystem;
namespace {

void* load(const fs::path& library, int flags) {
  void* handle = ::dlopen(library.c_str(), flags);
  if (!handle) throw EnvironmentError("cannot load {}: {}", library.string(), ::dlerror());
  return handle;
}

fs::path training_library() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& candidate : {folder, folder.parent_path() / "lib"}) {
    if (fs::exists(candidate / "libaitraining_train.so"))
      return candidate / "libaitraining_train.so";
  }
  throw EnvironmentError(
      "libaitraining_train.so is neither in {} nor in {}: the installation is incomplete",
      folder.string(), (folder.parent_path() / "lib").string());
}

// RTLD_LAZY: what only GPUs need stays unresolved on a machine without them.
void* load_training_library(bool cuda) {
  const fs::path library = training_library();
  const fs::path torch = find_torch(torch_candidates());
  std::vector<const char*> names{"libc10.so", "libtorch_cpu.so"};
  if (cuda) names.insert(names.end(), {"libc10_cuda.so", "libtorch_cuda.so"});
  for (const char* name : names) load(torch / name, RTLD_LAZY | RTLD_GLOBAL);
  return load(library, RTLD_LAZY | RTLD_LOCAL);
}

template <class Function>
Function* entry(void* library, const char* name) {
  void* symbol = ::dlsym(library, name);
  if (!symbol)
    throw EnvironmentError("libaitraining_train.so has no {}: it is of another version", name);
  return reinterpret_cast<Function*>(symbol);
}

bool uses_cuda(const std::string& params_file) {
  const auto json = nlohmann::ordered_json::parse(read_file(params_file), nullptr, false);
  const std::string device = json.is_object() ? json.value("device", "auto") : "auto";
  return device == "cuda" || (device == "auto" && probe_devices().cuda_devices > 0);
}

}  // namespace

int run_rank_in_process(const std::string& params_file) {
  void* library = load_training_library(uses_cuda(params_file));
  return entry<decltype(aitraining_run_rank)>(library, "aitraining_run_rank")(params_file.c_str());
}

int run_tool_in_process(const std::string& request) {
  void* library = load_training_library(false);
  return entry<decltype(aitraining_run_tool)>(library, "aitraining_run_tool")(request.c_str());
}

}  // namespace aitraining::launch
