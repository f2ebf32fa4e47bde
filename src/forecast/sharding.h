#pragma once
#include <nlohmann/json.hpp>

#include "aitraining/forecast/forecast.h"

namespace aitraining::forecast {

// The configuration of ZeRO in effect, in the words of DeepSpeed's own file; null for other
// engines.
nlohmann::ordered_json zero_configuration(const Forecast& forecast);

}  // namespace aitraining::forecast
