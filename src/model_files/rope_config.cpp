#include "rope_config.h"

#include <optional>

namespace aitraining::model {
namespace {

constexpr double kDefaultTheta = 10000.0;

// The object that holds the scaling. As in transformers, a filled rope_scaling is taken before rope_parameters.
std::optional<ConfigReader> rope_object(const ConfigReader& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto* value = config.find(key);
    if (!value || (value->is_object() && value->empty())) continue;
    return config.child(key);
  }
  return std::nullopt;
}

double factor_of(const ConfigReader& rope) {
  const double factor = rope.positive("factor");
  if (factor < 1) rope.refuse("factor", "a number of at least 1 is needed");
  return factor;
}

void parse_llama3(const ConfigReader& config, const ConfigReader& rope, RopeConfig& out) {
  out.kind = RopeKind::llama3;
  out.factor = factor_of(rope);
  out.low_freq_factor = rope.positive("low_freq_factor");
  out.high_freq_factor = rope.positive("high_freq_factor");
  if (out.high_freq_factor <= out.low_freq_factor) rope.refuse("high_freq_factor", "it must be above low_freq_factor");
  // transformers lets the key outside the object win, and falls back to the model's own length.
  const int64_t inside = rope.size("original_max_position_embeddings", config.size("max_position_embeddings"));
  out.original_max_position_embeddings = config.size("original_max_position_embeddings", inside);
}

}  // namespace

RopeConfig parse_rope(const ConfigReader& config) {
  RopeConfig out;
  out.theta = config.positive("rope_theta", kDefaultTheta);
  if (config.positive("partial_rotary_factor", 1.0) != 1.0)
    config.refuse("partial_rotary_factor", "rotating a part of each head is not supported");
  const auto rope = rope_object(config);
  if (!rope) return out;
  for (const auto& [key, value] : rope->json().items())
    if (value.is_object()) rope->refuse(key, "rotary parameters per kind of layer are not supported");
  out.theta = rope->positive("rope_theta", out.theta);
  if (rope->positive("partial_rotary_factor", 1.0) != 1.0)
    rope->refuse("partial_rotary_factor", "rotating a part of each head is not supported");
  const std::string key = rope->has("rope_type") ? "rope_type" : "type";
  const std::string type = rope->text(key, "default");
  if (type == "llama3") {
    parse_llama3(config, *rope, out);
  } else if (type == "linear") {
    out.kind = RopeKind::linear;
    out.factor = factor_of(*rope);
  } else if (type != "default") {
    rope->refuse(key, "supported rotary types are default, linear and llama3");
  }
  return out;
}

}  // namespace aitraining::model
