#include "aitraining/core/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include <gtest/gtest.h>

#include "aitraining/core/error.h"

namespace aitraining {
namespace {
namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "aitraining-files-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  size_t entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }
  fs::path folder_;
};

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const EnvironmentError& e) {
    return e.what();
  }
  return "no error";
}

TEST_F(Files, WriterWritesInOrderAndAtOffsets) {
  FileWriter writer(folder_ / "a");
  writer.write("hello ", 6);
  writer.write("world", 5);
  writer.write_at(0, "J", 1);
  EXPECT_EQ(writer.bytes_written(), 12u);
  writer.finish();
  EXPECT_EQ(read_file(folder_ / "a"), "Jello world");
  EXPECT_THROW(writer.finish(), BugError);
}

TEST_F(Files, FullDiskNamesPathAndReason) {
  FileWriter writer("/dev/full");
  const std::string message = message_of([&] { writer.write("x", 1); });
  EXPECT_NE(message.find("/dev/full"), std::string::npos) << message;
  EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
  EXPECT_NE(message.find("free space"), std::string::npos) << message;
}

TEST_F(Files, MissingFileNamesPathAndReason) {
  const fs::path missing = folder_ / "none" / "x";
  for (const auto& message :
       {message_of([&] { read_file(missing); }), message_of([&] { MappedFile m(missing); }),
        message_of([&] { FileWriter w(missing); })}) {
    EXPECT_NE(message.find(missing.string()), std::string::npos) << message;
    EXPECT_NE(message.find("No such file or directory"), std::string::npos) << message;
  }
  EXPECT_NE(message_of([&] { read_file(folder_); }).find("Is a directory"), std::string::npos);
}

TEST_F(Files, AtomicWriteReplacesWholeAndLeavesNothingAside) {
  const fs::path path = folder_ / "params.json";
  write_file_atomic(path, "first, the longer one");
  write_file_atomic(path, "second", 0600);
  EXPECT_EQ(read_file(path), "second");
  EXPECT_EQ(entries(), 1u);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(Files, AtomicWriteThatFailsLeavesTheOldFile) {
  fs::create_directories(folder_ / "target" /
                         "inside");  // rename over a folder that is not empty fails
  EXPECT_THROW(write_file_atomic(folder_ / "target", "x"), EnvironmentError);
  EXPECT_EQ(entries(), 1u);
  EXPECT_TRUE(fs::exists(folder_ / "target" / "inside"));
}

TEST_F(Files, ReadsFilesWhoseSizeIsNotKnown) {
  EXPECT_NE(read_file("/proc/self/status").find("Pid:"), std::string::npos);
  write_file_atomic(folder_ / "empty", "");
  EXPECT_EQ(read_file(folder_ / "empty"), "");
}

TEST_F(Files, CopyIsExact) {
  std::string content(3 * (1 << 20) + 17, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 >> 3);
  write_file_atomic(folder_ / "from", content);
  copy_file_synced(folder_ / "from", folder_ / "to");
  EXPECT_EQ(read_file(folder_ / "to"), content);
}

TEST_F(Files, MappedFileShowsBytesAlsoAfterRelease) {
  std::string content(50000, 'x');
  content[0] = 'a';
  content[49999] = 'z';
  write_file_atomic(folder_ / "m", content);
  MappedFile first(folder_ / "m");
  MappedFile mapped(std::move(first));
  EXPECT_EQ(first.bytes().size(), 0u);
  ASSERT_EQ(mapped.bytes().size(), content.size());
  mapped.release(0, content.size());
  mapped.release(1u << 30, 5);
  EXPECT_EQ(static_cast<char>(mapped.bytes()[0]), 'a');
  EXPECT_EQ(static_cast<char>(mapped.bytes()[49999]), 'z');
  write_file_atomic(folder_ / "empty", "");
  EXPECT_EQ(MappedFile(folder_ / "empty").bytes().size(), 0u);
}

}  // namespace
}  // namespace aitraining
