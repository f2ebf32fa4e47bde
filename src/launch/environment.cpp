#include "environment.h"

#include <charconv>
#include <cstdlib>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "aitraining/launch/launch.h"

namespace aitraining::launch {
namespace {

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

int whole_number(const std::string& name, const std::string& text) {
  int number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) {
    throw UserError("{}={} is not a whole number: set it to one, or unset it", name, text);
  }
  return number;
}

int required_number(const std::string& name) {
  const auto text = variable(name);
  if (!text) throw UserError("{} is not set, though RANK is: a rank process needs both", name);
  return whole_number(name, *text);
}

std::optional<int> forced_processes(std::vector<std::string>& notes) {
  if (const auto text = variable("AUTOTRAIN_FORCE_NUM_PROCESSES")) {
    return whole_number("AUTOTRAIN_FORCE_NUM_PROCESSES", *text);
  }
  const auto old = variable("AUTOTRAIN_FORCE_NUM_GPUS");
  if (!old) return std::nullopt;
  notes.emplace_back(
      "AUTOTRAIN_FORCE_NUM_GPUS is deprecated; it controls launcher process count, not GPU "
      "visibility. Use "
      "AUTOTRAIN_FORCE_NUM_PROCESSES instead. To restrict visible devices, set "
      "CUDA_VISIBLE_DEVICES.");
  return whole_number("AUTOTRAIN_FORCE_NUM_GPUS", *old);
}

void note_leftovers(std::vector<std::string>& notes) {
  std::vector<std::string> left;
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR"}) {
    if (variable(name)) left.emplace_back(name);
  }
  // Alone, MASTER_PORT is the user's choice of a port.
  if (has_leftovers() && variable("MASTER_PORT")) left.emplace_back("MASTER_PORT");
  if (!left.empty()) {
    notes.push_back(join(left, ", ") +
                    " left in the environment: ignored, since this command starts its own ranks");
  }
}

}  // namespace

const std::vector<std::string>& rank_variables() {
  static const std::vector<std::string> names{"RANK",
                                              "LOCAL_RANK",
                                              "WORLD_SIZE",
                                              "LOCAL_WORLD_SIZE",
                                              "MASTER_ADDR",
                                              "MASTER_PORT",
                                              "GROUP_RANK",
                                              "ROLE_RANK",
                                              "ROLE_WORLD_SIZE",
                                              "TORCHELASTIC_RUN_ID",
                                              "TORCHELASTIC_RESTART_COUNT",
                                              "TORCHELASTIC_MAX_RESTARTS",
                                              kStoreFdVariable};
  return names;
}

bool has_leftovers() {
  return variable("RANK") || variable("WORLD_SIZE") || variable("LOCAL_RANK");
}

RankEnvironment read_rank_environment() {
  RankEnvironment rank;
  if (!variable("RANK")) return rank;
  rank.rank = required_number("RANK");
  rank.local_rank = required_number("LOCAL_RANK");
  rank.world_size = required_number("WORLD_SIZE");
  rank.local_world_size = required_number("LOCAL_WORLD_SIZE");
  if (rank.world_size > 1) {
    rank.master_port = required_number("MASTER_PORT");
    const auto address = variable("MASTER_ADDR");
    if (!address)
      throw UserError("MASTER_ADDR is not set, though RANK is: a rank process needs both");
    rank.master_addr = *address;
  }
  if (const auto fd = variable(kStoreFdVariable))
    rank.store_listen_fd = whole_number(kStoreFdVariable, *fd);
  if (rank.rank < 0 || rank.rank >= rank.world_size || rank.local_rank < 0 ||
      rank.local_rank >= rank.local_world_size) {
    throw UserError("RANK={} LOCAL_RANK={} do not fit WORLD_SIZE={} LOCAL_WORLD_SIZE={}", rank.rank,
                    rank.local_rank, rank.world_size, rank.local_world_size);
  }
  return rank;
}

LaunchInputs read_launch_inputs(const config::TrainingParams& params) {
  LaunchInputs inputs;
  if (params.nproc_per_node) {
    inputs.forced_processes = static_cast<int>(*params.nproc_per_node);
  } else {
    inputs.forced_processes = forced_processes(inputs.notes);
  }
  note_leftovers(inputs.notes);
  return inputs;
}

}  // namespace aitraining::launch
