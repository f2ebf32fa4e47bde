// Several machines: the command is started on each, and each starts its own ranks.
#include <filesystem>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "accelerate_file.h"
#include "aitraining/core/error.h"
#include "aitraining/launch/launch.h"
#include "environment.h"

namespace aitraining::launch {
namespace fs = std::filesystem;
namespace {

template <class T>
std::optional<T> value_of(const YAML::Node& file, const char* key) {
  const YAML::Node node = file[key];
  if (!node || node.IsNull()) return std::nullopt;
  return node.as<T>();
}

// The file that `accelerate config` writes counts only when it names several machines.
void take_accelerate_file(const fs::path& path, Cluster& cluster) {
  try {
    const YAML::Node file = YAML::LoadFile(path.string());
    if (!file.IsMap()) return;
    const int machines = value_of<int>(file, "num_machines").value_or(1);
    if (machines <= 1) return;
    cluster.nnodes = machines;
    cluster.node_rank = value_of<int>(file, "machine_rank").value_or(0);
    const auto address = value_of<std::string>(file, "main_process_ip");
    if (!address) throw UserError("{}: num_machines is {}, but main_process_ip is missing", path.string(), machines);
    cluster.master_addr = *address;
    cluster.master_port = value_of<int>(file, "main_process_port").value_or(kUsualPort);
    if (const auto processes = value_of<int>(file, "num_processes")) {
      if (*processes % machines != 0) {
        throw UserError("{}: num_processes {} cannot be shared out over {} machines", path.string(), *processes, machines);
      }
      cluster.ranks_here = *processes / machines;
    }
    if (cluster.node_rank < 0 || cluster.node_rank >= machines) {
      throw UserError("{}: machine_rank {} is not below num_machines {}", path.string(), cluster.node_rank, machines);
    }
    cluster.notes.push_back(fmt::format("{} machines after accelerate's configuration file {} (flags would come before it)",
                                        machines, path.string()));
  } catch (const YAML::Exception& e) {
    throw UserError("{}:{}: {} (accelerate's configuration file; mend or remove it)", path.string(), e.mark.line + 1, e.msg);
  }
}

}  // namespace

Cluster read_cluster(const config::TrainingParams& params) {
  Cluster cluster;
  cluster.nnodes = static_cast<int>(params.nnodes);
  cluster.node_rank = static_cast<int>(params.node_rank);
  if (params.nnodes == 1 && !params.launcher) {
    if (const auto file = accelerate_default_file()) take_accelerate_file(*file, cluster);
  } else if (params.nnodes > 1) {
    cluster.master_port = kUsualPort;
  }
  if (cluster.nnodes == 1 && !params.launcher) {
    if (params.master_addr) {
      cluster.notes.push_back(fmt::format("master_addr {} has no effect on one machine, where ranks meet on the loopback "
                                          "address; for several give --nnodes", *params.master_addr));
    }
  } else if (params.master_addr) {
    cluster.master_addr = *params.master_addr;
  }
  if (params.master_port) cluster.master_port = static_cast<int>(*params.master_port);
  return cluster;
}

}  // namespace aitraining::launch
