#include "sharding.h"

namespace aitraining::forecast {

nlohmann::ordered_json zero_configuration(const Forecast& forecast) {
  const auto& params = forecast.config.params;
  const std::string& engine = forecast.plan.engine;
  if (engine != "zero2" && engine != "zero3") return nullptr;
  const bool zero3 = engine == "zero3";
  nlohmann::ordered_json optimization{
      {"stage", zero3 ? 3 : 2},
      {"offload_optimizer", {{"device", params.offload_optimizer.value_or("none")}}},
      {"offload_param", {{"device", params.offload_param.value_or("none")}}}};
  if (zero3) optimization["stage3_gather_16bit_weights_on_model_save"] = true;
  nlohmann::ordered_json all{{"train_batch_size", forecast.rows_per_update},
                             {"train_micro_batch_size_per_gpu", params.batch_size},
                             {"gradient_accumulation_steps", params.gradient_accumulation},
                             {"gradient_clipping", params.max_grad_norm},
                             {"zero_optimization", optimization}};
  all["bf16"] = {{"enabled", forecast.plan.precision == "bf16"}};
  return all;
}

}  // namespace aitraining::forecast
