#include "aitraining/project/front_check.h"

#include <filesystem>

#include "aitraining/config/config.h"
#include "aitraining/core/error.h"
#include "aitraining/data/sft.h"

namespace aitraining::project {
namespace fs = std::filesystem;
namespace {

void check_model(const std::string& model) {
  const fs::path path = fs::absolute(model);
  if (fs::is_directory(path)) return;
  if (fs::exists(path)) {
    if (path.extension() == ".gguf") return;
    throw UserError("model {}: neither a folder nor a .gguf file", path.string());
  }
  throw UserError(
      "model {}: there is no {}. Models are read from disk; one of the Hugging Face Hub is fetched "
      "with "
      "`huggingface-cli download {} --local-dir DIR`, then give --model DIR",
      model, path.string(), model);
}

void check_split(const config::TrainingParams& params, const std::string& split,
                 const std::string& word) {
  data::SftOptions options;
  options.text_column = params.text_column;
  options.text_column_given = params.text_column != "text";
  const data::SplitFile file = data::find_split(params.data_path, split);
  data::check_columns(file, data::read_rows(file), options, word);
}

// A run writes model and tokenizer files into its project folder: never over what it reads from.
void check_project(const config::TrainingParams& params) {
  const fs::path project = fs::weakly_canonical(config::project_folder(params));
  const auto refuse_same = [&](const std::string& input, const char* word, const char* flag) {
    if (fs::weakly_canonical(fs::absolute(input)) != project) return;
    throw UserError(
        "--project-name: {} is the {} folder ({}); its files would be overwritten. Choose another "
        "name.",
        project.string(), word, flag);
  };
  refuse_same(params.model, "model", "--model");
  refuse_same(params.data_path, "data", "--data-path");
}

}  // namespace

void check_before_launch(const config::TrainingParams& params) {
  check_model(params.model);
  check_project(params);
  check_split(params, params.train_split, "training");
  if (params.valid_split) check_split(params, *params.valid_split, "validation");
}

}  // namespace aitraining::project
