#include "aitraining/core/phase.h"

#include <gtest/gtest.h>

namespace aitraining {

TEST(Phase, IsTheLastOneEntered) {
  EXPECT_FALSE(current_phase().empty());
  enter_phase("update 3");
  enter_phase("saving");
  EXPECT_EQ(current_phase(), "saving");
}

}  // namespace aitraining
