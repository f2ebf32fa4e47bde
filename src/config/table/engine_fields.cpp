#include "table/parts.h"

namespace aitraining::config::table {

using P = TrainingParams;

std::vector<Field> engine_fields() {
  return {
      {.member = &P::mixed_precision,
       .name = "mixed_precision",
       .group = Group::training,
       .tasks = kEveryTask,
       .help = "Compute type over fp32 master weights; unset: fp32",
       .choices = {"bf16", "fp16"},
       .later = {"fp8"},
       .synonyms = {{"no", ""}, {"fp32", ""}},
       .wrong_choice =
           "Unknown mixed_precision mode: {}. Choose between ['no','fp8','fp16','bf16']."},
      {.member = &P::distributed_backend,
       .name = "distributed_backend",
       .group = Group::training,
       .help = "Engine on several ranks: ddp (whole copies), deepspeed or zero3 (parameters, "
               "gradients and optimizer state sharded), zero2 (parameters whole); unset: ddp",
       .choices = {"ddp", "deepspeed", "zero3", "zero2"},
       .wrong_choice =
           "Unsupported distributed backend: '{}' (valid: ddp, deepspeed, zero3, zero2)"},
      {.member = &P::zero3_resident,
       .name = "zero3_resident",
       .group = Group::training,
       .initial = "0",
       .help = "ZeRO-3: so many of the last units stay whole within an update, for less "
               "communication; auto: as many as memory allows"},
      {.member = &P::offload_optimizer,
       .name = "offload_optimizer",
       .group = Group::training,
       .help = "Where fp32 masters and optimizer state are kept: cpu, or on the rank's device",
       .choices = {"cpu"},
       .synonyms = {{"none", ""}}},
      {.member = &P::offload_param,
       .name = "offload_param",
       .group = Group::training,
       .help = "ZeRO-3: where a rank's own part of the parameters is kept: cpu, or on its device",
       .choices = {"cpu"},
       .synonyms = {{"none", ""}}},
      {.member = &P::resume_from_checkpoint,
       .name = "resume_from_checkpoint",
       .group = Group::training,
       .help = "Checkpoint folder, or auto (also true, latest): the newest of the project",
       .synonyms = {{"true", "auto"}, {"latest", "auto"}, {"false", ""}}},
      {.member = &P::ddp_timeout,
       .name = "ddp_timeout",
       .group = Group::training,
       .initial = 7200,
       .help = "Seconds that a rank waits for the others in a collective",
       .range = {.min = 1, .max = 31536000}},
      {.member = &P::check_replicas,
       .name = "check_replicas",
       .group = Group::training,
       .initial = false,
       .help = "Compare a checksum of the weights over all ranks after every update"},
      {.member = &P::deterministic,
       .name = "deterministic",
       .group = Group::training,
       .initial = false,
       .help = "Sum gradients in rank order: equal bits with every engine at equal rank count"},
  };
}

}  // namespace aitraining::config::table
