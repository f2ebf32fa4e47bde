#include "table/parts.h"

namespace aitraining::config::table {

using P = TrainingParams;

std::vector<Field> basic_fields() {
  return {
      {.member = &P::model,
       .name = "model",
       .group = Group::basic,
       .tasks = kEveryTask,
       .initial = "",
       .help = "Base model: folder in Hugging Face form, or a .gguf file",
       .missing = "Model must be specified (--model, or base_model in the file)",
       .file_key = "base_model",
       .also_called = {"base_model", "model_name_or_path", "model_name"}},
      {.member = &P::project_name,
       .name = "project_name",
       .group = Group::basic,
       .tasks = kEveryTask,
       .initial = "",
       .help =
           "Output folder; a relative one lives in the current directory or AUTOTRAIN_PROJECTS_DIR",
       .missing = "Project name must be specified (--project-name, or project_name in the file)",
       .file_key = "project_name",
       .also_called = {"output_dir", "output", "project"}},
      {.member = &P::data_path,
       .name = "data_path",
       .group = Group::basic,
       .tasks = kEveryTask,
       .initial = "",
       .help = "Folder with <split>.csv, .jsonl, .json or .tsv, or one such file",
       .missing = "Data path must be specified (--data-path, or data.path in the file)",
       .file_key = "data.path",
       .also_called = {"data", "dataset", "dataset_path"}},
      {
          .member = &P::train_split,
          .name = "train_split",
          .group = Group::basic,
          .tasks = kEveryTask,
          .initial = "train",
          .help = "Training split: the file's name without its ending",
          .missing = "train_split must not be empty",
          .file_key = "data.train_split",
      },
      {.member = &P::valid_split,
       .name = "valid_split",
       .group = Group::basic,
       .tasks = kEveryTask,
       .help = "Validation split; turns evaluation on",
       .file_key = "data.valid_split",
       .also_called = {"eval_split", "validation_split", "test_split"}},
      {.member = &P::max_samples,
       .name = "max_samples",
       .group = Group::basic,
       .tasks = kEveryTask,
       .help = "Use this many rows, evenly spaced",
       .range = {.min = 1}},
  };
}

}  // namespace aitraining::config::table
