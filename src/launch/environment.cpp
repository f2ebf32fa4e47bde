#include "environment.h"

#include <charconv>
#include <cstdlib>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "aitraining/launch/launch.h"
#include "phase_board.h"

namespace aitraining::launch {

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

namespace {

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
                                              kStoreFdVariable,
                                              kStorePrefixVariable,
                                              kPhaseFdVariable};
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
  if (rank.local_rank >= 0) join_phase_board(rank.local_rank);
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
  if (const auto prefix = variable(kStorePrefixVariable)) {
    rank.store_elsewhere = true;
    rank.store_prefix = *prefix;
  }
  if (rank.rank < 0 || rank.rank >= rank.world_size || rank.local_rank < 0 ||
      rank.local_rank >= rank.local_world_size) {
    throw UserError("RANK={} LOCAL_RANK={} do not fit WORLD_SIZE={} LOCAL_WORLD_SIZE={}", rank.rank,
                    rank.local_rank, rank.world_size, rank.local_world_size);
  }
  return rank;
}

std::vector<std::pair<std::string, std::string>> rank_identity(const RankEnvironment& rank) {
  std::vector<std::pair<std::string, std::string>> identity{
      {"RANK", std::to_string(rank.rank)},
      {"LOCAL_RANK", std::to_string(rank.local_rank)},
      {"WORLD_SIZE", std::to_string(rank.world_size)},
      {"LOCAL_WORLD_SIZE", std::to_string(rank.local_world_size)},
      {"MASTER_ADDR", rank.master_addr},
      {"MASTER_PORT", std::to_string(rank.master_port)}};
  if (rank.store_listen_fd >= 0)
    identity.emplace_back(kStoreFdVariable, std::to_string(rank.store_listen_fd));
  if (rank.store_elsewhere) identity.emplace_back(kStorePrefixVariable, rank.store_prefix);
  return identity;
}

LaunchInputs read_launch_inputs(const config::TrainingParams& params) {
  LaunchInputs inputs;
  // A list, one number for each level of nesting, is OpenMP's to read; its first number counts here.
  if (const auto threads = variable("OMP_NUM_THREADS"); threads && std::atoi(threads->c_str()) > 0) {
    inputs.threads = std::atoi(threads->c_str());
  }
  if (params.launcher) {
    inputs.forced_processes = read_started_rank(params).local_world_size;
    return inputs;
  }
  if (params.nproc_per_node) {
    inputs.forced_processes = static_cast<int>(*params.nproc_per_node);
  } else {
    inputs.forced_processes = forced_processes(inputs.notes);
  }
  note_leftovers(inputs.notes);
  return inputs;
}

}  // namespace aitraining::launch
