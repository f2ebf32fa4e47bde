#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "aitraining/core/error.h"

namespace aitraining::test {

// The statement must end in a UserError whose message holds every one of `parts`.
template <class F>
void expect_user_error(F&& statement, const std::vector<std::string>& parts) {
  try {
    statement();
  } catch (const UserError& e) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << "\"" << part << "\" is not in: " << e.what();
    return;
  }
  ADD_FAILURE() << "no error";
}

}  // namespace aitraining::test
