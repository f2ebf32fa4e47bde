#pragma once
// The sizes of a decoder that memory and traffic follow from.
#include <cstdint>
#include <optional>
#include <string>

#include "aitraining/model/model_config.h"

namespace aitraining::forecast {

struct Shape {
  // Elements of the units' own parameters; a tied table is counted with the embedding alone.
  int64_t embedding = 0, block = 0, head = 0;
  int64_t adapters = 0;        // elements of all LoRA matrices
  int64_t adapted_layers = 0;  // linear layers with an adapter, over all blocks
  int64_t lora_r = 0;
  int64_t layers = 0, hidden = 0, intermediate = 0, vocab = 0;
  int64_t query = 0, key_value = 0;  // columns of q, and of k and v together
  bool tied = false;

  int64_t base() const { return embedding + layers * block + head; }
  // Of the largest unit as it is gathered: with a tied table the head holds that too.
  int64_t largest_unit() const;
};

struct Lora {
  int64_t r;
  std::string target_modules;
};
// UserError for target modules that the model has not.
Shape shape_of(const model::ModelConfig& config, const std::optional<Lora>& lora);

}  // namespace aitraining::forecast
