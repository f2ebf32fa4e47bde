#include "shape.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "aitraining/model/target_modules.h"

namespace aitraining::forecast {
namespace {

struct Linear {
  std::string name;
  int64_t in, out;
  bool bias;
};

std::vector<Linear> linears(const model::ModelConfig& c) {
  const int64_t query = c.num_heads * c.head_dim, key = c.num_kv_heads * c.head_dim;
  const int64_t h = c.hidden_size, i = c.intermediate_size;
  return {{"self_attn.q_proj", h, query, c.attention_bias},
          {"self_attn.k_proj", h, key, c.attention_bias},
          {"self_attn.v_proj", h, key, c.attention_bias},
          {"self_attn.o_proj", query, h, c.attention_bias},
          {"mlp.gate_proj", h, i, c.mlp_bias},
          {"mlp.up_proj", h, i, c.mlp_bias},
          {"mlp.down_proj", i, h, c.mlp_bias}};
}

void add_adapters(const model::ModelConfig& config, const Lora& lora, Shape& shape) {
  const std::vector<Linear> all = linears(config);
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const Linear& linear : all)
      names.push_back(fmt::format("model.layers.{}.{}", layer, linear.name));
  }
  const std::vector<bool> adapted = model::match_target_modules(lora.target_modules, names);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!adapted[i]) continue;
    const Linear& linear = all[i % all.size()];
    shape.adapters += lora.r * (linear.in + linear.out);
    ++shape.adapted_layers;
  }
  shape.lora_r = lora.r;
}

}  // namespace

int64_t Shape::largest_unit() const {
  return std::max({embedding, block, head + (tied ? embedding : 0)});
}

Shape shape_of(const model::ModelConfig& config, const std::optional<Lora>& lora) {
  Shape shape;
  shape.layers = config.num_layers;
  shape.hidden = config.hidden_size;
  shape.intermediate = config.intermediate_size;
  shape.vocab = config.vocab_size;
  shape.query = config.num_heads * config.head_dim;
  shape.key_value = 2 * config.num_kv_heads * config.head_dim;
  shape.tied = config.tie_word_embeddings;
  shape.embedding = shape.vocab * shape.hidden;
  shape.head = shape.hidden + (shape.tied ? 0 : shape.embedding);
  shape.block = 2 * shape.hidden;
  for (const Linear& linear : linears(config))
    shape.block += linear.in * linear.out + (linear.bias ? linear.out : 0);
  if (lora) add_adapters(config, *lora, shape);
  return shape;
}

}  // namespace aitraining::forecast
