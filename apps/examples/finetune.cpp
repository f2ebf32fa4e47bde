// Fine-tunes adapters with ZeRO-3:  example_finetune MODEL DATA PROJECT
#include <cstdio>

#include <fmt/format.h>

#include "aitraining/project.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: example_finetune MODEL DATA PROJECT\n");
    return 2;
  }
  aitraining::LLMTrainingParams params;
  params.model = argv[1];
  params.data_path = argv[2];
  params.project_name = argv[3];

  params.trainer = "sft";

  // Distribution
  params.distributed_backend = "deepspeed";  // or std::nullopt for DDP

  // Training
  params.epochs = 3;
  params.batch_size = 2;
  params.gradient_accumulation = 4;
  params.mixed_precision = "bf16";

  params.peft = true;
  params.lora_r = 16;

  try {
    aitraining::AutoTrainProject project(params, "local", true);
    fmt::print("Job ID: {}\n", project.create());
    return 0;
  } catch (const aitraining::TrainingFailed& e) {
    fmt::print(stderr, "{}\n", e.what());
    return e.code;
  } catch (const aitraining::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return e.exit_code();
  }
}
