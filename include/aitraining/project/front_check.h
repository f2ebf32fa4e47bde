#pragma once
#include "aitraining/config/training_params.h"

namespace aitraining::project {

// What can be found wrong without LibTorch and before any rank starts: model path, data files,
// columns. UserError.
void check_before_launch(const config::TrainingParams& params);

}  // namespace aitraining::project
