#pragma once
// A model is a chain of units: embedding, blocks, head. The engine owns the order of their forward and backward passes;
// the autograd graph is cut between units.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aitraining/ops/batch.h"
#include "aitraining/ops/param_group.h"

namespace aitraining::ops {

// What passes from unit to unit: the hidden states [T, hidden] first, later also encoder output or image features.
using Bundle = std::vector<at::Tensor>;

class Unit {
 public:
  virtual ~Unit() = default;
  // The first unit gets an anchor instead of hidden states (embedding.h). The last one returns the scalar sum of
  // -log p over the batch's labels. `batch` outlives the backward pass.
  virtual Bundle forward(const Bundle& in, const Batch& batch) const = 0;
  // False: the unit's graph holds next to nothing and its backward pass reads no weight. Such a unit is not computed
  // again, and its parameters are not gathered for backward.
  virtual bool backward_needs_weights() const { return true; }
  // Groups whose weights the unit uses; a tied embedding is in two units' lists.
  const std::vector<ParamGroup*>& groups() const { return groups_; }
  const std::string& name() const { return name_; }

 protected:
  Unit(std::string name, std::vector<ParamGroup*> groups) : name_(std::move(name)), groups_(std::move(groups)) {}

 private:
  std::string name_;
  std::vector<ParamGroup*> groups_;
};

struct Chain {
  std::vector<std::unique_ptr<ParamGroup>> groups;
  std::vector<std::unique_ptr<Unit>> units;
};

// Writes elements [first, first + out.numel()) of a parameter into `out`, a contiguous CPU tensor of fp32 or bf16.
using ParameterReader = std::function<void(const ParamSpec& param, int64_t first, at::Tensor out)>;

}  // namespace aitraining::ops
