#include "aitraining/ops/embedding.h"

#include "node.h"

namespace aitraining::ops {
namespace {

struct EmbedBackward : torch::autograd::Node {
  const Weight* table = nullptr;
  const Batch* batch = nullptr;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    at::NoGradGuard no_grad;
    if (table->trainable()) {
      auto gradient = table->gradient();
      gradient.index_add_(0, batch->tokens, grads[0].to(gradient.scalar_type()));
    }
    return {at::Tensor()};
  }
};

}  // namespace

at::Tensor embed(const at::Tensor& anchor, const Weight& table, const Batch& batch) {
  at::Tensor y;
  {
    at::NoGradGuard no_grad;
    y = table.value().index_select(0, batch.tokens);
  }
  attach<EmbedBackward>(y, {anchor}, [&](EmbedBackward& node) {
    node.table = &table;
    node.batch = &batch;
  });
  return y;
}

}  // namespace aitraining::ops
