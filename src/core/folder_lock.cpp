#include "aitraining/core/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/strings.h"

namespace aitraining {

FolderLock::FolderLock(const std::filesystem::path& folder, const std::string& purpose) {
  const std::filesystem::path file = folder / ".lock";
  fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) return;
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return;
    const std::string owner(trim(read_file(file)));
    ::close(fd_);
    fd_ = -1;
    throw UserError("{} is in use by another {} (process {}): wait for it, end it, or choose another --project-name",
                    folder.string(), purpose, owner);
  }
  const std::string owner = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd_, 0) == 0) [[maybe_unused]] const ssize_t n = ::pwrite(fd_, owner.data(), owner.size(), 0);
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace aitraining
