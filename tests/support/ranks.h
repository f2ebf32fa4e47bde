#pragma once
// Ranks as ordinary test code: run_ranks(n, fn) forks n processes before LibTorch has made a thread, gives each a
// process group over loopback, and reports which of them failed.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <vector>

#include "aitraining/comm/process_group.h"

namespace aitraining::testing {

// A listening socket on a free loopback port.
inline std::pair<int, int> listen_anywhere() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd, 64) != 0) return {-1, 0};
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return {fd, ntohs(address.sin_port)};
}

// Exit status of every rank, in rank order; -signal when one was ended by a signal. A rank fails by throwing.
inline std::vector<int> run_ranks(int n, const std::function<void(comm::ProcessGroup&)>& body,
                                  std::chrono::seconds timeout = std::chrono::seconds(30)) {
  const auto [fd, port] = listen_anywhere();
  std::vector<pid_t> children;
  for (int rank = 0; rank < n; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(100);  // a hang ends the test instead of outliving it
      try {
        at::set_num_threads(1);
        comm::GroupOptions options;
        options.backend = n == 1 ? "single" : "gloo";
        options.rank = rank;
        options.world_size = n;
        options.master_port = port;
        options.store_listen_fd = rank == 0 ? fd : -1;
        options.timeout = timeout;
        auto group = comm::make_process_group(options);
        body(*group);
        ::_exit(0);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
        ::_exit(1);
      }
    }
    children.push_back(child);
  }
  ::close(fd);
  std::vector<int> results;
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    results.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
  return results;
}

#define AIT_REQUIRE(condition) \
  if (!(condition)) throw std::runtime_error("does not hold: " #condition)

}  // namespace aitraining::testing
