// The launcher that the reference calls, in the words it would have used.
#include <cstdlib>

#include "aitraining/launch/launch.h"

namespace aitraining::launch {
namespace {

using Words = std::vector<std::string>;

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

Words deepspeed_flags(const config::TrainingParams& params, int stage) {
  const bool three = stage == 3;
  return {"--use_deepspeed",
          "--zero_stage",
          std::to_string(stage),
          "--offload_optimizer_device",
          params.offload_optimizer.value_or("none"),
          "--offload_param_device",
          params.offload_param.value_or("none"),
          "--zero3_save_16bit_model",
          three ? "true" : "false",
          "--zero3_init_flag",
          three ? "true" : "false",
          "--deepspeed_multinode_launcher",
          "standard",
          "--gradient_accumulation_steps",
          std::to_string(params.gradient_accumulation)};
}

// Rows L1 to L4 (text models) and L6 to L8 (the others) of the launcher's table.
Words launcher(const LaunchPlan& plan, const config::TrainingParams& params, config::Task task) {
  const int devices = plan.counted_devices;
  // For text models on one device or none, the module is started by the running interpreter.
  Words words{"accelerate", "launch"};
  if (task == config::Task::llm && devices <= 1)
    words = {"python", "-m", "accelerate.commands.launch"};
  if (devices == 0) {
    append(words, {"--cpu"});
  } else if (devices == 1) {
    append(words, {"--num_machines", "1", "--num_processes", "1"});
  } else if (plan.engine == "zero3" || plan.engine == "zero2") {
    append(words, deepspeed_flags(params, plan.engine == "zero3" ? 3 : 2));
  } else {
    append(words,
           {"--multi_gpu", "--num_machines", "1", "--num_processes", std::to_string(devices)});
  }
  return words;
}

std::string precision_word(const config::TrainingParams& params) {
  const std::string precision = params.mixed_precision.value_or("no");
  return precision == "fp16" || precision == "bf16" ? precision : "no";
}

}  // namespace

Words accelerate_command(const LaunchPlan& plan, const config::TrainingParams& params,
                         config::Task task) {
  Words words = launcher(plan, params, task);
  if (plan.counted_devices > 0) append(words, {"--mixed_precision", precision_word(params)});
  const std::string module =
      task == config::Task::llm ? "clm" : std::string(config::task_name(task));
  append(words, {"-m", "autotrain.trainers." + module, "--training_config",
                 config::project_folder(params) + "/training_params.json"});
  return words;
}

void apply_cluster(const Cluster& cluster, LaunchInputs& inputs) {
  inputs.nnodes = cluster.nnodes;
  if (!inputs.forced_processes) inputs.forced_processes = cluster.ranks_here;
  inputs.notes.insert(inputs.notes.end(), cluster.notes.begin(), cluster.notes.end());
}

void export_environment(const LaunchPlan& plan) {
  for (const auto& [name, value] : plan.environment) ::setenv(name.c_str(), value.c_str(), 0);
}

}  // namespace aitraining::launch
