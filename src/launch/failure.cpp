#include "failure.h"

#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/strings.h"

namespace aitraining::launch {
namespace {

bool by_our_signal(const RankEnd& end) {
  if (end.killed && end.status.signal == SIGKILL) return true;
  return end.terminated && (end.status.signal == SIGTERM || end.status.code == 128 + SIGTERM);
}

bool lost_peer(const RankEnd& end) {
  return end.status.signal == 0 && end.status.code == kExitPeerLost;
}

}  // namespace

std::optional<RankEnd> first_failure(const std::vector<RankEnd>& ends) {
  std::optional<RankEnd> without_peer;
  for (const RankEnd& end : ends) {
    if (end.status.success() || by_our_signal(end)) continue;
    if (!lost_peer(end)) return end;
    if (!without_peer) without_peer = end;
  }
  return without_peer;
}

int exit_code_of(const ExitStatus& status) {
  if (status.signal != 0) return 128 + status.signal;
  if (status.code == 0 || status.code == 2 || status.code > 128) return status.code;
  return 1;
}

std::string describe_status(const ExitStatus& status) {
  if (status.signal == 0) return fmt::format("exit code {}", status.code);
  return fmt::format("killed by signal {} ({}){}", status.signal, ::strsignal(status.signal),
                     status.signal == SIGKILL ? "; the system does that when memory runs out" : "");
}

std::string last_lines(const std::filesystem::path& file, int count) {
  try {
    const std::string content = read_file(file);
    const std::string_view text = trim(content);
    size_t begin = text.size();
    for (int i = 0; i < count && begin != std::string_view::npos && begin > 0; ++i)
      begin = text.rfind('\n', begin - 1);
    return std::string(begin == std::string_view::npos ? text : trim(text.substr(begin)));
  } catch (const EnvironmentError&) {
    return "";  // the report about a failure must not fail itself
  }
}

}  // namespace aitraining::launch
