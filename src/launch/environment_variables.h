#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace aitraining::launch {

// Variables that change how a run behaves, by name; what may be a secret is ***.
nlohmann::ordered_json relevant_variables(char** environment);
bool is_secret_variable(const std::string& name);

}  // namespace aitraining::launch
