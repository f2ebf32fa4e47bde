#pragma once
#include <functional>

#include "group_state.h"

namespace aitraining::engine {

// The part of a parameter that lies in this rank's range of its group.
struct OwnedRange {
  const ops::ParamSpec* param = nullptr;
  int64_t first = 0, count = 0;  // elements of the parameter
  int64_t begin = 0;             // where they are in the owned range
};

void visit_owned(const Engine::GroupState& state, const std::function<void(const OwnedRange&)>& f);

}  // namespace aitraining::engine
