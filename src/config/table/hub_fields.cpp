#include "table/parts.h"

namespace aitraining::config::table {

using P = TrainingParams;

std::vector<Field> launcher_fields() {
  return {
      {.member = &P::nproc_per_node,
       .name = "nproc_per_node",
       .group = Group::launcher,
       .tasks = kEveryTask,
       .help = "Ranks on this machine; unset: one per visible GPU, one on CPU",
       .range = {.min = 1, .max = 1024},
       .also_called = {"num_processes"}},
      {.member = &P::device,
       .name = "device",
       .group = Group::launcher,
       .tasks = kEveryTask,
       .initial = "auto",
       .help = "auto: GPUs when there are any",
       .choices = {"auto", "cpu", "cuda"}},
  };
}

std::vector<Field> hub_fields() {
  return {
      {
          .member = &P::push_to_hub,
          .name = "push_to_hub",
          .group = Group::hub,
          .tasks = kEveryTask,
          .initial = false,
          .help = "Upload the result",
          .not_yet =
              "remove it and upload the project folder, for example with `huggingface-cli upload`",
          .file_key = "hub.push_to_hub",
      },
      {
          .member = &P::username,
          .name = "username",
          .group = Group::hub,
          .tasks = kEveryTask,
          .help = "Hub user name",
          .environment = "HF_USERNAME",
          .file_key = "hub.username",
      },
      {.member = &P::token,
       .name = "token",
       .group = Group::hub,
       .tasks = kEveryTask,
       .help = "Hub token",
       .environment = "HF_TOKEN",
       .file_key = "hub.token",
       .also_called = {"hf_token", "hub_token"},
       .secret = true},
      {.member = &P::repo_id,
       .name = "repo_id",
       .group = Group::hub,
       .help = "Hub repository",
       .also_called = {"hub_model_id"}},
      {.member = &P::wandb_token,
       .name = "wandb_token",
       .group = Group::hub,
       .tasks = kEveryTask,
       .help = "Weights & Biases key",
       .environment = "WANDB_API_KEY",
       .secret = true},
      {.member = &P::hub_private,
       .name = "hub_private",
       .group = Group::hub,
       .tasks = kEveryTask,
       .initial = true,
       .help = "Make the Hub repository private"},
  };
}

}  // namespace aitraining::config::table
