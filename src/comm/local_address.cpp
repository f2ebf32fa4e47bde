#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "rendezvous.h"

namespace aitraining::comm {

// Connecting a datagram socket sends nothing; it makes the system choose the way and thereby the address.
std::string local_address_towards(const std::string& host, int port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) return "";
  std::string text;
  for (const addrinfo* at = found; at != nullptr && text.empty(); at = at->ai_next) {
    const int fd = ::socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    char name[NI_MAXHOST] = {};
    if (::connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, name, sizeof(name), nullptr, 0, NI_NUMERICHOST) == 0) {
      text = name;
    }
    ::close(fd);
  }
  ::freeaddrinfo(found);
  return text;
}

}  // namespace aitraining::comm
