#include "job.h"

#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "aitraining/core/error.h"

namespace aitraining::project {
namespace {

std::vector<std::string> environment(const config::StringMap& secrets) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text(*entry);
    if (!secrets.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  for (const auto& [name, value] : secrets) variables.push_back(name + "=" + value);
  return variables;
}

// A file in memory that holds `text`, read from its beginning.
class TextFile {
 public:
  explicit TextFile(const std::string& text) : descriptor_(::memfd_create("params", MFD_CLOEXEC)) {
    size_t done = 0;
    while (descriptor_ >= 0 && done < text.size()) {
      const ssize_t n = ::write(descriptor_, text.data() + done, text.size() - done);
      if (n < 0 && errno != EINTR) break;
      done += static_cast<size_t>(std::max<ssize_t>(n, 0));
    }
    if (descriptor_ < 0 || done < text.size())
      throw EnvironmentError("cannot hand over the parameters: {}", std::strerror(errno));
    ::lseek(descriptor_, 0, SEEK_SET);
  }
  ~TextFile() { ::close(descriptor_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

pid_t spawn(const std::string& executable, const TextFile& input,
            std::vector<std::string> variables) {
  std::vector<std::string> arguments{"aitraining", "--run-job"};
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  };
  // A session and a signal mask of its own: the terminal's signals reach it through this program.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.descriptor(), STDIN_FILENO);
  pid_t pid = 0;
  const int code = ::posix_spawn(&pid, executable.c_str(), &actions, &attributes,
                                 pointers(arguments).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) throw EnvironmentError("cannot start {}: {}", executable, std::strerror(code));
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR)
      throw EnvironmentError("cannot wait for process {}: {}", pid, std::strerror(errno));
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

JobEnd run_job_process(const std::filesystem::path& executable,
                       const config::TrainingParams& params) {
  const TextFile input(config::changed_values(params, config::Secrets::left_out).dump());
  const pid_t pid =
      spawn(executable.string(), input, environment(config::secret_environment(params)));
  return {.pid = pid, .code = wait_for(pid)};
}

}  // namespace aitraining::project
