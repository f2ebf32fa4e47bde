#include "rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "environment.h"

namespace aitraining::launch {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

FileDescriptor open_checked(const std::string& path, int flags) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (!file.valid()) throw EnvironmentError("cannot open {}: {}", path, std::strerror(errno));
  return file;
}

// Everything that the new process needs, made before fork: between fork and exec nothing may
// allocate.
struct Prepared {
  pid_t parent;
  std::vector<std::string> arguments, variables;
  std::vector<char*> argv, envp;
  FileDescriptor input, output, failed_read, failed_write;
};

Prepared prepare(const RankProgram& program, const RankSetup& setup) {
  Prepared p{.parent = ::getpid(),
             .arguments = {"aitraining"},
             .variables = rank_environment(setup),
             .argv = {},
             .envp = {},
             .input = open_checked("/dev/null", O_RDONLY),
             .output = FileDescriptor(),
             .failed_read = FileDescriptor(),
             .failed_write = FileDescriptor()};
  p.arguments.insert(p.arguments.end(), program.arguments.begin(), program.arguments.end());
  p.argv = pointers(p.arguments);
  p.envp = pointers(p.variables);
  if (!setup.log_file.empty()) {
    p.output = open_checked(setup.log_file.string(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw EnvironmentError("cannot open a pipe: {}", std::strerror(errno));
  p.failed_read = FileDescriptor(ends[0]);
  p.failed_write = FileDescriptor(ends[1]);
  return p;
}

// In the child. Returns only when exec failed.
void become(const RankProgram& program, const RankSetup& setup, const Prepared& p) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != p.parent) ::_exit(1);  // the parent died before the line above took effect
  ::signal(SIGTTOU, SIG_IGN);  // `stty tostop` must not stop a background group that prints
  ::sigprocmask(SIG_SETMASK, &setup.signal_mask, nullptr);
  ::dup2(p.input.get(), STDIN_FILENO);
  if (p.output.valid()) {
    ::dup2(p.output.get(), STDOUT_FILENO);
    ::dup2(p.output.get(), STDERR_FILENO);
  }
  if (setup.phase_fd >= 0) ::fcntl(setup.phase_fd, F_SETFD, 0);
  if (setup.environment.store_listen_fd >= 0)
    ::fcntl(setup.environment.store_listen_fd, F_SETFD, 0);
  ::execve(program.executable.c_str(), p.argv.data(), p.envp.data());
}

FileDescriptor open_pidfd(pid_t pid) {
  FileDescriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    const int code = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw EnvironmentError("cannot watch process {}: {}", pid, std::strerror(code));
  }
  return pidfd;
}

}  // namespace

std::vector<std::string> rank_environment(const RankSetup& setup) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text(*entry);
    if (!std::ranges::count(rank_variables(), text.substr(0, text.find('='))))
      variables.push_back(text);
  }
  for (const auto& [name, value] : rank_identity(setup.environment)) variables.push_back(name + "=" + value);
  if (setup.phase_fd >= 0) variables.push_back(fmt::format("{}={}", kPhaseFdVariable, setup.phase_fd));
  if (!std::getenv("OMP_NUM_THREADS")) variables.push_back(fmt::format("OMP_NUM_THREADS={}", setup.threads));
  return variables;
}

RankProcess start_rank(const RankProgram& program, const RankSetup& setup) {
  Prepared prepared = prepare(program, setup);
  const pid_t pid = ::fork();
  if (pid < 0)
    throw EnvironmentError("cannot start rank {}: {}", setup.environment.rank,
                           std::strerror(errno));
  if (pid == 0) {
    become(program, setup, prepared);
    const int code = errno;
    [[maybe_unused]] const ssize_t n = ::write(prepared.failed_write.get(), &code, sizeof(code));
    ::_exit(127);
  }
  ::setpgid(pid, pid);  // here too: a signal to the group may come before the child's own call
  RankProcess process{.rank = setup.environment.rank,
                      .pid = pid,
                      .pidfd = open_pidfd(pid),
                      .log_file = setup.log_file,
                      .status = {}};
  prepared.failed_write.reset();
  int code = 0;
  ssize_t n;
  while ((n = ::read(prepared.failed_read.get(), &code, sizeof(code))) < 0 && errno == EINTR) {
  }
  if (n == sizeof(code)) {
    ::waitpid(pid, nullptr, 0);
    throw EnvironmentError("cannot start rank {}: {}: {}", process.rank, program.executable,
                           std::strerror(code));
  }
  return process;
}

void collect(RankProcess& process) {
  int status = 0;
  while (::waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    process.status.signal = WTERMSIG(status);
  } else {
    process.status.code = WEXITSTATUS(status);
  }
  process.pidfd.reset();
}

}  // namespace aitraining::launch
