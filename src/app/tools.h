#pragma once
#include <nlohmann/json.hpp>

namespace aitraining::app {

// `aitraining tools ...`; see include/aitraining/app/run_rank.h for the requests.
void run_tool(const nlohmann::ordered_json& request);

}  // namespace aitraining::app
