#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "aitraining/report/records.h"

namespace aitraining::report {
namespace {

TEST(Memory, SeesWhatIsTouchedAndRemembersThePeak) {
  constexpr size_t kSize = 128ull << 20;
  const uint64_t before = resident_bytes();
  ASSERT_GT(before, 1ull << 20);
  {
    // malloc maps a block of this size on its own and gives it back when freed.
    std::unique_ptr<char, decltype(&std::free)> block(static_cast<char*>(std::malloc(kSize)),
                                                      &std::free);
    std::memset(block.get(), 1, kSize);
    EXPECT_GE(resident_bytes(), before + kSize * 9 / 10);
  }
  EXPECT_LT(resident_bytes(), before + kSize / 2);
  EXPECT_GE(peak_resident_bytes(), before + kSize * 9 / 10);
}

}  // namespace
}  // namespace aitraining::report
