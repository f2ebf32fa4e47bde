#include "aitraining/objective/objective.h"

namespace aitraining::objective {
namespace {

class SftObjective : public Objective {
 public:
  double weight(int64_t labels) const override { return static_cast<double>(labels); }
  void prepare(ops::Batch& batch, double total_weight) const override { batch.loss_scale = 1.0 / total_weight; }
  double loss(double sum, double total_weight) const override { return sum / total_weight; }
};

}  // namespace

std::unique_ptr<Objective> make_sft_objective() { return std::make_unique<SftObjective>(); }

}  // namespace aitraining::objective
