#pragma once
#include "aitraining/model/model_config.h"
#include "config_reader.h"

namespace aitraining::model {

// rope_parameters (new), or rope_theta with rope_scaling (old).
RopeConfig parse_rope(const ConfigReader& config);

}  // namespace aitraining::model
