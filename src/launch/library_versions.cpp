#include "library_versions.h"

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "torch_library.h"

namespace aitraining::launch {
namespace {

namespace fs = std::filesystem;

// The numbers of "#define NAME 9" for each name, joined by dots.
std::string from_header(const fs::path& header, const std::vector<std::string>& names) {
  std::ifstream stream(header);
  std::vector<std::string> numbers(names.size());
  for (std::string line; std::getline(stream, line);) {
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string start = "#define " + names[i] + " ";
      if (line.starts_with(start) && numbers[i].empty())
        numbers[i] = trim(line.substr(start.size()));
    }
  }
  for (const std::string& number : numbers)
    if (number.empty()) return "";
  return join(numbers, ".");
}

// "cuda: Optional[str] = '13.0'" of torch/version.py.
std::string cuda_of(const fs::path& torch) {
  std::ifstream stream(torch / "version.py");
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("cuda")) continue;
    const size_t begin = line.find_first_of("'\""), end = line.find_last_of("'\"");
    if (begin < end) return line.substr(begin + 1, end - begin - 1);
  }
  return "";
}

}  // namespace

nlohmann::ordered_json library_versions(const fs::path& library) {
  const fs::path torch = (library / ".").lexically_normal().parent_path().parent_path();
  const fs::path nvidia = torch.parent_path() / "nvidia";
  nlohmann::ordered_json versions;
  const auto add = [&](const char* name, const std::string& version) {
    if (!version.empty()) versions[name] = version;
  };
  add("libtorch", torch_version(library));
  add("libtorch_folder", library.string());
  add("cuda", cuda_of(torch));
  add("cudnn", from_header(nvidia / "cudnn/include/cudnn_version.h",
                           {"CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"}));
  add("nccl",
      from_header(nvidia / "nccl/include/nccl.h", {"NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH"}));
  return versions;
}

nlohmann::ordered_json library_versions() {
  try {
    return library_versions(find_torch(torch_candidates()));
  } catch (const EnvironmentError& e) {
    return {{"problem", e.what()}};
  }
}

}  // namespace aitraining::launch
