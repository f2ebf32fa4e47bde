#pragma once
// A Llama of one layer (hidden 8, 2 heads, 1 kv head, intermediate 12, vocabulary 10) written to a temporary folder.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "aitraining/format/safetensors_writer.h"
#include "aitraining/model/model_config.h"
#include "support/weight_files.h"

namespace aitraining::test {

inline nlohmann::ordered_json tiny_config() {
  return {{"architectures", nlohmann::ordered_json::array({"LlamaForCausalLM"})},
          {"model_type", "llama"},
          {"hidden_size", 8},
          {"intermediate_size", 12},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"vocab_size", 10},
          {"max_position_embeddings", 32},
          {"rms_norm_eps", 1e-5},
          {"tie_word_embeddings", false}};
}

using Shapes = std::map<std::string, std::vector<int64_t>>;

inline Shapes tiny_shapes(const nlohmann::ordered_json& config) {
  Shapes shapes;
  for (const auto& [name, shape] : model::expected_tensors(model::parse_config(config, "tiny"))) shapes[name] = shape;
  return shapes;
}

inline int64_t product(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t dim : shape) elements *= dim;
  return elements;
}

// Element i of every tensor is i.
inline std::vector<float> counting(const std::vector<int64_t>& shape) {
  std::vector<float> values(static_cast<size_t>(product(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return values;
}

inline void write_tensors(const std::filesystem::path& file, const Shapes& shapes) {
  std::vector<format::PlannedTensor> plan;
  for (const auto& [name, shape] : shapes) plan.push_back({name, format::DType::f32, shape});
  format::SafetensorsWriter writer(file, plan);
  for (const auto& [name, shape] : shapes) writer.write(name, 0, product(shape), counting(shape).data());
  writer.finish();
}

inline void write_model(const TempDir& folder, const nlohmann::ordered_json& config, const Shapes& shapes) {
  folder.write("config.json", config.dump(2));
  write_tensors(folder.path() / "model.safetensors", shapes);
}

}  // namespace aitraining::test
