#pragma once
// All writing of results goes through here, so that it is atomic, synced, and can be made to fail
// by tests.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace aitraining {

// A file that is being written. Errors are EnvironmentError naming the path and the system's text.
class FileWriter {
 public:
  enum class Open { create, existing };  // create: or truncate; existing: another process made it
  explicit FileWriter(std::filesystem::path path, Open how = Open::create);
  ~FileWriter();  // closes without sync when finish() was not reached
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  void write(const void* data, size_t bytes);
  void write_at(uint64_t offset, const void* data, size_t bytes);
  void finish();  // fsync and close
  uint64_t bytes_written() const { return bytes_; }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

std::string read_file(const std::filesystem::path& path);
// Writes aside, syncs, renames over `path`, syncs the parent folder.
void write_file_atomic(const std::filesystem::path& path, std::string_view content,
                       unsigned mode = 0644);
void copy_file_synced(const std::filesystem::path& from, const std::filesystem::path& to);
// XXH64 of a file's bytes. Its pages do not stay in this process's resident memory.
uint64_t hash_file(const std::filesystem::path& path);
void sync_folder(const std::filesystem::path& folder);
// rename(2) plus a sync of the parent folder.
void rename_synced(const std::filesystem::path& from, const std::filesystem::path& to);

// A read-only map of a whole file.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }
  // Gives the pages of [offset, offset+size) back to the system: they stop counting in this
  // process's resident memory.
  void release(uint64_t offset, uint64_t size) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace aitraining
