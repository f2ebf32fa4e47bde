#include "config_source.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/strings.h"

extern char** environ;

namespace aitraining::config {
namespace {

constexpr int kLongestSeconds = 30;
constexpr int kLargestBytes = 1 << 20;

// A pipe whose ends close themselves.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0)
      throw EnvironmentError("cannot open a pipe: {}", std::strerror(errno));
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int end(int which) const { return ends_[static_cast<size_t>(which)]; }
  void close(int which) {
    int& fd = ends_[static_cast<size_t>(which)];
    if (fd >= 0) ::close(fd);
    fd = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

// curl reads its options from standard input, so that a password in the URL is in no process list.
std::string curl_options(const std::string& url) {
  std::string quoted;
  for (char c : url) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return fmt::format(
      "url = \"{}\"\nfail\nsilent\nshow-error\nlocation\ngloboff\nmax-redirs = 5\n"
      "proto = \"http,https\"\nproto-redir = \"http,https\"\nmax-time = {}\nmax-filesize = {}\n",
      quoted, kLongestSeconds, kLargestBytes);
}

struct Ended {
  int code = -1;
  std::string output, errors;
};

pid_t spawn_curl(const Pipe& input, const Pipe& output, const Pipe& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.end(0), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.end(1), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.end(1), STDERR_FILENO);
  const char* arguments[] = {"curl", "--disable", "--config", "-", nullptr};
  pid_t pid = 0;
  const int code =
      ::posix_spawnp(&pid, "curl", &actions, nullptr, const_cast<char**>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code == 0) return pid;
  throw UserError(
      "Failed to retrieve YAML file. The program curl is needed for --config with a URL, and "
      "cannot "
      "be started ({}): install it (apt-get install curl), or download the file yourself",
      std::strerror(code));
}

Ended run_curl(const std::string& url) {
  Pipe input, output, errors;
  const std::string options = curl_options(url);
  // Far shorter than what a pipe holds, so this needs no reader yet.
  if (::write(input.end(1), options.data(), options.size()) < 0)
    throw EnvironmentError("cannot write to a pipe: {}", std::strerror(errno));
  const pid_t pid = spawn_curl(input, output, errors);
  for (Pipe* pipe : {&input, &output, &errors}) pipe->close(1);
  input.close(0);
  Ended ended;
  ended.output = read_all(output.end(0));
  ended.errors = read_all(errors.end(0));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

std::string download(const std::string& url) {
  const bool writable = std::ranges::none_of(
      url, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F; });
  if (!writable || url.size() > 2000)
    throw UserError("--config {}: no URL (it holds blanks or is too long)", shown_name(url));
  const Ended ended = run_curl(url);
  if (ended.code == 0) return ended.output;
  std::string reason(trim(ended.errors));
  if (reason.find("://") != std::string::npos) reason = "curl refuses it";  // it repeats the URL
  throw UserError("--config {}: Failed to retrieve YAML file. {}", shown_name(url), reason);
}

}  // namespace

bool is_url(const std::string& path) {
  const std::string lower = to_lower(path.substr(0, 8));
  return lower.starts_with("http://") || lower.starts_with("https://");
}

std::string shown_name(const std::string& path) {
  if (!is_url(path)) return path;
  std::string shown = path.substr(0, path.find_first_of("?#"));
  const size_t host = shown.find("://") + 3, slash = shown.find('/', host);
  const size_t at = shown.rfind('@', slash);
  if (at != std::string::npos && at > host) shown.erase(host, at + 1 - host);
  return shown;
}

std::string read_config_text(const std::string& path) {
  if (is_url(path)) return download(path);
  try {
    return read_file(path);
  } catch (const EnvironmentError& e) {
    throw UserError("--config: {}", e.what());
  }
}

}  // namespace aitraining::config
