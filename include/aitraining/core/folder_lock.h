#pragma once
#include <filesystem>
#include <string>

namespace aitraining {

// Keeps a folder for one process at a time, as long as it lives. UserError naming the process that has it. On file
// systems without locks nothing is kept.
class FolderLock {
 public:
  FolderLock(const std::filesystem::path& folder, const std::string& purpose);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace aitraining
