#include "aitraining/core/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "aitraining/core/error.h"

namespace aitraining {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const char* what, const fs::path& path, int code = errno) {
  const char* advice =
      code == ENOSPC || code == EDQUOT ? " (free space on that disk or choose another folder)" : "";
  throw EnvironmentError("cannot {} {}: {}{}", what, path.string(), std::strerror(code), advice);
}

template <class Call>
auto retry(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

int open_file(const fs::path& path, int flags, const char* what, unsigned mode = 0666) {
  const int fd = retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0) fail(what, path);
  return fd;
}

struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

// The kernel may take less than it was given (large blocks, full disk): go on until all is written
// or it says why not.
template <class Write>
void write_all(const void* data, size_t bytes, const fs::path& path, Write write) {
  const auto* p = static_cast<const char*>(data);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = retry([&] { return write(p + done, bytes - done, done); });
    if (n < 0) fail("write", path);
    if (n == 0) fail("write", path, EIO);
    done += static_cast<size_t>(n);
  }
}

void sync_and_close(int fd, const fs::path& path) {
  const int synced = retry([&] { return ::fsync(fd); });
  const int code = errno;
  const int closed = ::close(fd);
  if (synced < 0) fail("sync", path, code);
  if (closed < 0 && errno != EINTR) fail("close", path);
}

fs::path parent_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

}  // namespace

FileWriter::FileWriter(fs::path path, Open how)
    : path_(std::move(path)),
      fd_(how == Open::create ? open_file(path_, O_WRONLY | O_CREAT | O_TRUNC, "create")
                              : open_file(path_, O_WRONLY, "write")) {}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void FileWriter::write(const void* data, size_t bytes) {
  write_all(data, bytes, path_,
            [&](const char* p, size_t n, size_t) { return ::write(fd_, p, n); });
  bytes_ += bytes;
}

void FileWriter::write_at(uint64_t offset, const void* data, size_t bytes) {
  write_all(data, bytes, path_, [&](const char* p, size_t n, size_t done) {
    return ::pwrite(fd_, p, n, static_cast<off_t>(offset + done));
  });
  bytes_ += bytes;
}

void FileWriter::finish() {
  AIT_CHECK(fd_ >= 0, "{} was finished before", path_.string());
  const int fd = fd_;
  fd_ = -1;
  sync_and_close(fd, path_);
}

std::string read_file(const fs::path& path) {
  const Descriptor file{open_file(path, O_RDONLY, "read")};
  struct stat status {};
  if (::fstat(file.fd, &status) < 0) fail("read", path);
  if (S_ISDIR(status.st_mode)) fail("read", path, EISDIR);
  std::string content;
  content.resize(static_cast<size_t>(status.st_size) +
                 1);  // one more byte, to see the end without another round
  size_t done = 0;
  while (true) {
    const ssize_t n =
        retry([&] { return ::read(file.fd, content.data() + done, content.size() - done); });
    if (n < 0) fail("read", path);
    if (n == 0) break;
    done += static_cast<size_t>(n);
    if (done == content.size()) content.resize(content.size() * 2 + 4096);
  }
  content.resize(done);
  return content;
}

void write_file_atomic(const fs::path& path, std::string_view content, unsigned mode) {
  // The writer's number keeps two processes from writing the same file aside.
  const fs::path aside = path.string() + ".tmp" + std::to_string(::getpid());
  const int fd = open_file(aside, O_WRONLY | O_CREAT | O_TRUNC, "create", mode);
  try {
    // umask may have taken bits, and a file left over from before keeps its own.
    if (::fchmod(fd, mode) < 0) fail("set the mode of", aside);
    write_all(content.data(), content.size(), aside,
              [&](const char* p, size_t n, size_t) { return ::write(fd, p, n); });
  } catch (...) {
    ::close(fd);
    ::unlink(aside.c_str());
    throw;
  }
  try {
    sync_and_close(fd, aside);
    rename_synced(aside, path);
  } catch (...) {
    ::unlink(aside.c_str());
    throw;
  }
}

void copy_file_synced(const fs::path& from, const fs::path& to) {
  const Descriptor source{open_file(from, O_RDONLY, "read")};
  FileWriter target(to);
  std::string block(1 << 20, '\0');
  while (true) {
    const ssize_t n = retry([&] { return ::read(source.fd, block.data(), block.size()); });
    if (n < 0) fail("read", from);
    if (n == 0) break;
    target.write(block.data(), static_cast<size_t>(n));
  }
  target.finish();
}

void sync_folder(const fs::path& folder) {
  sync_and_close(open_file(folder, O_RDONLY | O_DIRECTORY, "open"), folder);
}

void rename_synced(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) < 0) {
    const int code = errno;
    throw EnvironmentError("cannot rename {} to {}: {}", from.string(), to.string(),
                           std::strerror(code));
  }
  sync_folder(parent_of(to));
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  const Descriptor file{open_file(path, O_RDONLY, "read")};
  struct stat status {};
  if (::fstat(file.fd, &status) < 0) fail("read", path);
  if (S_ISDIR(status.st_mode)) fail("read", path, EISDIR);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;  // mmap refuses a length of 0
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) fail("map", path);
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

void MappedFile::release(uint64_t offset, uint64_t size) const {
  if (!data_ || offset >= size_) return;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  // Whole pages inside the range only: neighbours may still be read.
  const uint64_t end = std::min<uint64_t>(offset + size, size_);
  const uint64_t first = (offset + page - 1) / page * page;
  const uint64_t last = end == size_ ? size_ : end / page * page;
  if (first < last) ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

}  // namespace aitraining
