#include "store_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "aitraining/core/error.h"
#include "environment.h"

namespace aitraining::launch {
namespace {

int port_variable() {
  const char* text = std::getenv("MASTER_PORT");
  if (!text || !*text || has_leftovers()) return 0;
  int port = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, code] = std::from_chars(text, end, port);
  if (code != std::errc() || stop != end || port < 0 || port > 65535) {
    throw UserError(
        "MASTER_PORT={} is not a port: unset it (a free port is then chosen), or set 0 to 65535",
        text);
  }
  return port;
}

[[noreturn]] void fail(const Cluster& cluster, int port, int code) {
  const bool several = cluster.nnodes > 1;
  if (code == EADDRINUSE || code == EACCES) {
    throw UserError("port {} cannot be used for the rendezvous: {}. {}", port, std::strerror(code),
                    several ? "Give another one on every machine (--master-port)"
                            : "Unset MASTER_PORT and --master-port (a free port is then chosen), or "
                              "set another one");
  }
  throw EnvironmentError("cannot listen on port {}: {}", port, std::strerror(code));
}

}  // namespace

StoreSocket open_store_socket(const Cluster& cluster) {
  const bool several = cluster.nnodes > 1;
  const int port = several || cluster.master_port > 0 ? cluster.master_port : port_variable();
  FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid()) fail(cluster, port, errno);
  // A port that a finished run left in TIME_WAIT is free; one with a listener is still refused.
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  // Other machines must reach it; on one machine nothing but loopback is opened.
  address.sin_addr.s_addr = htonl(several ? INADDR_ANY : INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
    fail(cluster, port, errno);
  if (::listen(listener.get(), SOMAXCONN) != 0) fail(cluster, port, errno);
  socklen_t size = sizeof(address);
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    fail(cluster, port, errno);
  return {std::move(listener), ntohs(address.sin_port)};
}

}  // namespace aitraining::launch
