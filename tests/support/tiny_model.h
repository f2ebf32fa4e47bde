#pragma once
// A small random Llama without files, and batches for it.
#include <cmath>

#include "aitraining/core/strings.h"
#include "aitraining/model/decoder.h"
#include "aitraining/ops/kernels.h"

namespace aitraining::testing {

inline model::ModelConfig tiny_config(bool tied = false) {
  model::ModelConfig c;
  c.architecture = "LlamaForCausalLM";
  c.hidden_size = 32;
  c.intermediate_size = 64;
  c.num_layers = 2;
  c.num_heads = 4;
  c.num_kv_heads = 2;
  c.head_dim = 8;
  c.vocab_size = 61;
  c.max_position_embeddings = 64;
  c.tie_word_embeddings = tied;
  return c;
}

// N(0, 0.05)-like values from the parameter's name alone; norms 1.
inline ops::ParameterReader tiny_weights() {
  return [](const ops::ParamSpec& param, int64_t first, at::Tensor out) {
    if (param.shape.size() == 1 && param.name.find("norm") != std::string::npos) {
      out.fill_(1.0);
    } else {
      ops::kernels::uniform_fill(out, hash64(param.name.data(), param.name.size(), 5) + first, 0.1);
    }
  };
}

// Rows of the given lengths, all tokens but the first of each row trained. Row r always has the same tokens.
inline ops::Batch tiny_batch(const model::Decoder& decoder, const std::vector<int64_t>& rows, double total_labels) {
  ops::Batch batch;
  std::vector<int64_t> tokens, positions, label_rows, labels, keys;
  batch.segment_begin = {0};
  for (int64_t row : rows) {
    const int64_t length = 4 + row % 7;
    for (int64_t i = 0; i < length; ++i) {
      tokens.push_back((row * 31 + i * i * 7 + i) % decoder.config().vocab_size);
      positions.push_back(i);
      keys.push_back(ops::kernels::mix_key(42, 0, static_cast<uint64_t>(row), static_cast<uint64_t>(i)));
      if (i == 0) continue;
      label_rows.push_back(static_cast<int64_t>(tokens.size()) - 2);
      labels.push_back(tokens.back());
    }
    batch.segment_begin.push_back(static_cast<int64_t>(tokens.size()));
  }
  batch.tokens = at::tensor(tokens);
  batch.positions = at::tensor(positions);
  batch.label_rows = at::tensor(label_rows);
  batch.labels = at::tensor(labels);
  batch.row_keys = at::tensor(keys);
  batch.loss_scale = 1.0 / total_labels;
  decoder.add_rope(batch);
  return batch;
}

inline int64_t tiny_labels(const std::vector<int64_t>& rows) {
  int64_t n = 0;
  for (int64_t row : rows) n += 3 + row % 7;
  return n;
}

}  // namespace aitraining::testing
