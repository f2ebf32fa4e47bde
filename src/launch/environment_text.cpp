#include <algorithm>

#include <fmt/format.h>

#include "aitraining/core/strings.h"
#include "aitraining/launch/environment_report.h"

namespace aitraining::launch {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kMostLines = 50, kMostGpus = 16, kLongestLine = 240;

std::string text_of(const Json& value) {
  if (value.is_null()) return "unknown";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string sizes(const Json& space) {
  if (!space.is_object()) return "unknown";
  return fmt::format("{} free of {}", human_bytes(space["free"].get<uint64_t>()),
                     human_bytes(space["total"].get<uint64_t>()));
}

std::string pairs(const Json& object, const char* between) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : object.items()) parts.push_back(name + between + text_of(value));
  return join(parts, ", ");
}

std::string gpu_line(const Json& gpu, size_t index) {
  std::string line =
      fmt::format("- GPU {}: {}, {}, compute {}, PCI {}", index, text_of(gpu["name"]),
                  sizes({{"free", gpu["memory_free"]}, {"total", gpu["memory_total"]}}),
                  text_of(gpu["compute_capability"]), text_of(gpu["pci_bus"]));
  if (gpu["numa_node"] >= 0) line += fmt::format(", NUMA node {}", gpu["numa_node"].get<int>());
  return line + ", " + text_of(gpu["uuid"]);
}

class Lines {
 public:
  void add(const std::string& label, const std::string& value) { add("- " + label + ": " + value); }
  void add(std::string line) {
    if (line.size() > kLongestLine) line = line.substr(0, kLongestLine) + "...";
    lines_.push_back(std::move(line));
  }
  std::string text() {
    if (lines_.size() > kMostLines) {
      lines_.resize(kMostLines - 1);
      lines_.emplace_back("- ... (all of it: aitraining env --json)");
    }
    return join(lines_, "\n") + "\n";
  }

 private:
  std::vector<std::string> lines_;
};

void add_libraries(const Json& libraries, Lines& lines) {
  if (libraries.contains("problem")) return lines.add("LibTorch", text_of(libraries["problem"]));
  const auto version = [&](const char* name) {
    return libraries.contains(name) ? text_of(libraries[name]) : "not found";
  };
  lines.add("LibTorch version",
            fmt::format("{} ({})", version("libtorch"), version("libtorch_folder")));
  lines.add("CUDA, cuDNN, NCCL",
            fmt::format("{}, {}, {}", version("cuda"), version("cudnn"), version("nccl")));
}

void add_gpus(const Json& report, Lines& lines) {
  const Json& gpus = report["gpus"];
  if (gpus.empty()) lines.add("GPU type", "N/A (no visible NVIDIA GPU)");
  for (size_t i = 0; i < std::min(gpus.size(), kMostGpus); ++i) lines.add(gpu_line(gpus[i], i));
  const Json& topology = report["topology"];
  if (topology.size() > 1) {
    lines.add("- Topology:");
    for (size_t i = 0; i < std::min(topology.size(), kMostGpus); ++i) {
      std::string row = fmt::format("\tGPU{:<3}", i);
      for (const Json& link : topology[i]) row += fmt::format(" {:<4}", text_of(link));
      lines.add(std::string(row.substr(0, row.find_last_not_of(' ') + 1)));
    }
  }
  for (const Json& warning : report["warnings"]) lines.add("Warning", text_of(warning));
}

// One line each while there are few.
void add_variables(const Json& variables, Lines& lines) {
  if (variables.empty()) return lines.add("Variables", "none that matter");
  std::string line = "- Variables:";
  for (const auto& [name, value] : variables.items()) {
    const std::string word = fmt::format(" {}={}", name, text_of(value));
    if (line.size() + word.size() > kLongestLine) {
      lines.add(std::move(line));
      line = "\t";
    }
    line += word;
  }
  lines.add(std::move(line));
}

}  // namespace

std::string environment_text(const Json& report) {
  Lines lines;
  lines.add("Copy-and-paste the text below in your GitHub issue (accelerate env)");
  lines.add("`aitraining` version", text_of(report["aitraining"]));
  lines.add("Platform", fmt::format("{}, {}, {}", text_of(report["platform"]["system"]),
                                    text_of(report["platform"]["kernel"]),
                                    text_of(report["platform"]["machine"])));
  lines.add("`aitraining` location", text_of(report["program"]));
  lines.add("Engines", join(report["engines"].get<std::vector<std::string>>(), ", ") +
                           "; quantization " + text_of(report["quantization"]));
  add_libraries(report["libraries"], lines);
  lines.add("Accelerator", report["gpus"].empty() ? "N/A" : "CUDA");
  const bool driver = !text_of(report["driver"]).empty();
  lines.add("Driver", driver ? fmt::format("{} (up to CUDA {})", text_of(report["driver"]),
                                           text_of(report["driver_cuda"]))
                             : "no NVIDIA driver");
  add_gpus(report, lines);
  lines.add("Processor", pairs(report["processor"], " "));
  lines.add("System RAM", sizes(report["memory"]));
  lines.add("/dev/shm", sizes(report["shared_memory"]));
  lines.add("Disk here", sizes(report["disk_here"]));
  lines.add("Limits", pairs(report["limits"], " "));
  add_variables(report["variables"], lines);
  const Json& accelerate = report["accelerate_config"];
  lines.add("`Accelerate` default config",
            accelerate.is_null() ? "Not found" : text_of(accelerate["file"]));
  if (accelerate.is_object())
    for (const Json& line : accelerate["lines"]) lines.add("\t" + text_of(line));
  return lines.text();
}

}  // namespace aitraining::launch
