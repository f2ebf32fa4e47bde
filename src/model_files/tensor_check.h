#pragma once
// The tensors that the architecture needs against those that are there.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "aitraining/model/model_config.h"

namespace aitraining::model {

// Architecture's name -> name in the store.
using Rename = std::function<std::string(const std::string&)>;

std::vector<std::string> missing_tensors(const ModelConfig& config, const format::TensorStore& store, const Rename& rename);
// UserError listing tensors of another shape, or stored as integers. All must be there.
void check_shapes(const ModelConfig& config, const format::TensorStore& store, const Rename& rename);
// Names in the store that are not in `used`.
std::vector<std::string> unused_tensors(const format::TensorStore& store, const std::set<std::string>& used);
// "a, b and 7 more"
std::string name_list(const std::vector<std::string>& names);

}  // namespace aitraining::model
