#include "aitraining/app/run_rank.h"

#include <csignal>
#include <exception>
#include <filesystem>
#include <optional>

#include <c10/util/Exception.h>
#include <nlohmann/json.hpp>

#include "aitraining/config/config.h"
#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/log.h"
#include "aitraining/core/phase.h"
#include "aitraining/launch/launch.h"
#include "memory.h"
#include "session.h"
#include "tools.h"

namespace aitraining::app {
namespace {

// The run of this process, for messages. A tool has none.
std::optional<config::TrainingParams> running;

std::string out_of_memory(const std::string& text) {
  if (!running) return "out of memory: " + text;
  return out_of_memory_message(text, launch::read_rank_environment().rank, *running);
}

// The library's outer wall: every failure becomes one logged message and an exit code.
template <class F>
int guarded(F&& f) {
  // A file size limit is then an error of write(), with path and cause, instead of a silent end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    f();
    return 0;
  } catch (const comm::PeerLostError& e) {
    log::error("{}", e.what());
    return launch::kExitPeerLost;
  } catch (const Error& e) {
    log::error("{}", e.what());
    return e.exit_code();
  } catch (const c10::OutOfMemoryError& e) {
    log::error("{}", out_of_memory(e.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    log::error("{}", out_of_memory(""));
  } catch (const c10::Error& e) {
    const std::string text = e.what_without_backtrace();
    const bool memory = text.find("DefaultCPUAllocator") != std::string::npos;
    log::error("{}", memory ? out_of_memory(text) : "[torch] in " + current_phase() + ": " + text);
  } catch (const std::exception& e) {
    log::error("[bug] {}", e.what());
  }
  return 1;
}

void train(const char* params_file) {
  const auto rank = launch::read_rank_environment();
  auto params = config::from_json(nlohmann::ordered_json::parse(read_file(params_file)), params_file);
  running = params;
  const std::string project = config::project_folder(params);
  log::Options options;
  std::filesystem::create_directories(project);
  options.file = rank.rank == 0 ? project + "/autotrain.log" : "";
  options.prefix = rank.rank == 0 ? "" : fmt::format("rank {}: ", rank.rank);
  log::init(options);
  Session(std::move(params), rank).run();
}

}  // namespace
}  // namespace aitraining::app

int aitraining_run_rank(const char* params_file) {
  return aitraining::app::guarded([&] { aitraining::app::train(params_file); });
}

int aitraining_run_tool(const char* request) {
  return aitraining::app::guarded([&] { aitraining::app::run_tool(nlohmann::ordered_json::parse(request)); });
}
