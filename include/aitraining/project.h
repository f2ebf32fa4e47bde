#pragma once
// Training from a C++ program, with the names of the command line. Link the CMake target
// aitraining_project; no LibTorch comes with it, since the ranks are processes of their own.
//
//   aitraining::LLMTrainingParams params;
//   params.model = "./model";
//   params.data_path = "./data";
//   params.project_name = "my-model";
//   params.trainer = "sft";
//   params.peft = true;
//   aitraining::AutoTrainProject(params, "local", true).create();
#include <string>

#include "aitraining/config/training_params.h"
#include "aitraining/core/error.h"

namespace aitraining {

// Every parameter of a language model's training, at its default (docs/parameters.md).
struct LLMTrainingParams : config::TrainingParams {
  LLMTrainingParams();
};

// A training that did not end well. What went wrong was printed by the training itself.
struct TrainingFailed : EnvironmentError {
  explicit TrainingFailed(int code);
  int code;  // the exit code that the command line would have given
};

class AutoTrainProject {
 public:
  // backend: where to run; "local" is this machine, the only one so far. process: read and prepare
  // the data of data_path, which this program always does; false is refused.
  explicit AutoTrainProject(LLMTrainingParams params, std::string backend = "local",
                            bool process = true);

  // Checks everything as the command line does (UserError with all problems, nothing written), then
  // runs `aitraining` and returns its process id, the job id, after it has ended well. Its files
  // are those of the command line. The executable is AITRAINING_BIN, else the one beside this
  // program, else the first on PATH. TrainingFailed; EnvironmentError when it cannot be started.
  // When this process ends, for example by Ctrl-C, the training ends too.
  int create();

 private:
  LLMTrainingParams params_;
  std::string backend_;
  bool process_;
};

}  // namespace aitraining
