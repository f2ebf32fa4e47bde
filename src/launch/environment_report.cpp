#include "aitraining/launch/environment_report.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "accelerate_file.h"
#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "environment_variables.h"
#include "host.h"
#include "library_versions.h"

namespace aitraining::launch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The value of "key : value" or KEY="value" in a small system file.
std::string value_in(const char* file, const std::string& key, char separator) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const size_t at = line.find(separator);
    if (at == std::string::npos || trim(line.substr(0, at)) != key) continue;
    std::string value(trim(line.substr(at + 1)));
    if (value.size() > 1 && value.front() == '"') value = value.substr(1, value.size() - 2);
    return value;
  }
  return "";
}

Json platform() {
  utsname name{};
  ::uname(&name);
  return {{"system", value_in("/etc/os-release", "PRETTY_NAME", '=')},
          {"kernel", fmt::format("{} {}", name.sysname, name.release)},
          {"machine", name.machine}};
}

int numa_nodes() {
  std::error_code code;
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", code)) {
    const std::string name = entry.path().filename();
    count += name.starts_with("node") && name.size() > 4 && std::isdigit(name[4]) ? 1 : 0;
  }
  return count;
}

Json processor() {
  const std::string flags = " " + value_in("/proc/cpuinfo", "flags", ':') + " ";
  const auto has = [&](const std::string& flag) {
    return flags.find(" " + flag + " ") != std::string::npos;
  };
  return {{"model", value_in("/proc/cpuinfo", "model name", ':')},
          {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"usable_cores", usable_cores()},
          {"numa_nodes", numa_nodes()},
          {"avx512_bf16", has("avx512_bf16")},
          {"amx_bf16", has("amx_bf16")}};
}

Json space(const std::string& folder) {
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) != 0) return nullptr;
  const uint64_t unit = info.f_frsize;
  return {{"total", info.f_blocks * unit}, {"free", info.f_bavail * unit}};
}

Json limits() {
  Json all = Json::object();
  constexpr std::pair<const char*, __rlimit_resource> kLimits[] = {
      {"open_files", RLIMIT_NOFILE}, {"processes", RLIMIT_NPROC}, {"locked_memory", RLIMIT_MEMLOCK},
      {"address_space", RLIMIT_AS},  {"data", RLIMIT_DATA},       {"file_size", RLIMIT_FSIZE},
      {"core_file", RLIMIT_CORE}};
  for (const auto& [name, resource] : kLimits) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) continue;
    all[name] = limit.rlim_cur == RLIM_INFINITY ? Json("unlimited") : Json(limit.rlim_cur);
  }
  return all;
}

Json gpus(const DeviceInventory& devices) {
  Json all = Json::array();
  for (const Gpu& gpu : devices.gpus) {
    all.push_back({{"name", gpu.name},
                   {"uuid", gpu.uuid},
                   {"memory_total", gpu.memory_total},
                   {"memory_free", gpu.memory_free},
                   {"compute_capability", gpu.compute_capability},
                   {"pci_bus", gpu.pci_bus},
                   {"numa_node", gpu.numa_node},
                   {"cores", gpu.cores},
                   {"mig", gpu.mig}});
  }
  return all;
}

Json accelerate(const std::string& named) {
  std::optional<fs::path> file = accelerate_default_file();
  if (!named.empty()) {
    file = named;
    if (!fs::is_regular_file(*file))
      throw UserError("--config_file: there is no file {}", fs::absolute(*file).string());
  }
  if (!file) return nullptr;
  return {{"file", file->string()}, {"lines", accelerate_lines(*file)}};
}

std::string program() {
  std::error_code code;
  return fs::read_symlink("/proc/self/exe", code).string();
}

}  // namespace

Json describe_environment(const std::string& version, const DeviceInventory& devices,
                          const std::string& accelerate_config) {
  Json warnings = Json::array();
  if (const auto slow = slow_link_warning(devices.links, devices.cuda_devices); !slow.empty())
    warnings.push_back(slow);
  return {{"aitraining", version},
          {"program", program()},
          {"engines", {"ddp", "zero2", "zero3"}},
          {"quantization", "none"},
          {"platform", platform()},
          {"processor", processor()},
          {"memory",
           {{"total", proc_bytes("/proc/meminfo", "MemTotal:")}, {"free", devices.memory_free}}},
          {"shared_memory", space("/dev/shm")},
          {"disk_here", space(".")},
          {"limits", limits()},
          {"libraries", library_versions()},
          {"driver", devices.driver},
          {"driver_cuda", devices.cuda},
          {"gpus", gpus(devices)},
          {"topology", devices.links},
          {"warnings", warnings},
          {"variables", relevant_variables(environ)},
          {"accelerate_config", accelerate(accelerate_config)}};
}

}  // namespace aitraining::launch
