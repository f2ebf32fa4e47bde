#pragma once
// The units of a Llama-like decoder.
#include "aitraining/ops/attention.h"
#include "aitraining/ops/embedding.h"
#include "aitraining/ops/head.h"
#include "aitraining/ops/project.h"
#include "aitraining/ops/unit.h"

namespace aitraining::model {

class EmbeddingUnit : public ops::Unit {
 public:
  EmbeddingUnit(std::vector<ops::ParamGroup*> groups, ops::Weight table)
      : Unit("embedding", std::move(groups)), table_(std::move(table)) {}
  ops::Bundle forward(const ops::Bundle& in, const ops::Batch& batch) const override {
    return {ops::embed(in[0], table_, batch)};
  }
  bool backward_needs_weights() const override { return false; }

 private:
  ops::Weight table_;
};

struct BlockParts {
  ops::Projection qkv, output, gate_up, down;
  ops::AttentionShape attention;
};

class BlockUnit : public ops::Unit {
 public:
  BlockUnit(std::string name, std::vector<ops::ParamGroup*> groups, BlockParts parts)
      : Unit(std::move(name), std::move(groups)), parts_(std::move(parts)) {}
  ops::Bundle forward(const ops::Bundle& in, const ops::Batch& batch) const override {
    const at::Tensor& x = in[0];
    auto mixed = ops::attention(ops::project(x, parts_.qkv, batch), parts_.attention, batch);
    auto middle = ops::project(mixed, parts_.output, batch, x);
    auto gates = ops::project(middle, parts_.gate_up, batch);
    return {ops::project(gates, parts_.down, batch, middle)};
  }

 private:
  BlockParts parts_;
};

class HeadUnit : public ops::Unit {
 public:
  HeadUnit(std::vector<ops::ParamGroup*> groups, ops::Head head)
      : Unit("head", std::move(groups)), head_(std::move(head)) {}
  ops::Bundle forward(const ops::Bundle& in, const ops::Batch& batch) const override {
    return {ops::negative_log_likelihood(in[0], head_, batch)};
  }
  bool backward_needs_weights() const override { return false; }  // forward makes the gradients
  const ops::Head& head() const { return head_; }

 private:
  ops::Head head_;
};

}  // namespace aitraining::model
