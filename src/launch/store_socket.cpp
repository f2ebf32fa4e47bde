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

int wanted_port() {
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

[[noreturn]] void fail(int port, int code) {
  if (code == EADDRINUSE || code == EACCES) {
    throw UserError(
        "MASTER_PORT={} cannot be used: {}. Unset MASTER_PORT (a free port is then chosen), or set "
        "another "
        "one",
        port, std::strerror(code));
  }
  throw EnvironmentError("cannot listen on 127.0.0.1 port {}: {}", port, std::strerror(code));
}

}  // namespace

StoreSocket open_store_socket() {
  const int port = wanted_port();
  FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid()) fail(port, errno);
  // A port that a finished run left in TIME_WAIT is free; one with a listener is still refused.
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
    fail(port, errno);
  if (::listen(listener.get(), SOMAXCONN) != 0) fail(port, errno);
  socklen_t size = sizeof(address);
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    fail(port, errno);
  return {std::move(listener), ntohs(address.sin_port)};
}

}  // namespace aitraining::launch
