#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/error.h"
#include "aitraining/launch/launch.h"
#include "aitraining/project/training.h"
#include "plan_command.h"

namespace aitraining {
namespace {

// The process list shows arguments to everybody on the machine.
void hide_secrets(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char* value = std::strchr(argv[i], '=');
    const std::string name(argv[i],
                           value ? static_cast<size_t>(value - argv[i]) : std::strlen(argv[i]));
    if (!config::is_secret_flag(name)) continue;
    char* secret = value ? value + 1 : i + 1 < argc ? argv[i + 1] : nullptr;
    if (secret) std::memset(secret, '*', std::strlen(secret));
  }
}

int run(int argc, char** argv) {
  config::Command command = config::parse_command_line({argv + 1, argv + argc});
  hide_secrets(argc, argv);
  using Kind = config::Command::Kind;
  switch (command.kind) {
    case Kind::help:
    case Kind::version:
    case Kind::print:
      fmt::print("{}", command.text);
      return 0;
    case Kind::run_rank:
      return launch::run_rank_in_process(command.rank_params);
    case Kind::tool:
      return launch::run_tool_in_process(command.tool_request);
    case Kind::train:
      return project::run(project::prepare(std::move(command.config)));
    case Kind::job:
      return project::run_job(std::move(command.config));
    case Kind::plan:
      return plan(command.config, command.plan);
    case Kind::environment:
      return print_environment(command.environment);
  }
  throw BugError("[bug] a command without an action");
}

}  // namespace
}  // namespace aitraining

int main(int argc, char** argv) {
  try {
    return aitraining::run(argc, argv);
  } catch (const aitraining::Error& e) {
    fmt::print(stderr, "aitraining: error: {}\n", e.what());
    return e.exit_code();
  } catch (const std::exception& e) {
    fmt::print(stderr, "aitraining: error: [bug] {}\n", e.what());
    return 1;
  }
}
