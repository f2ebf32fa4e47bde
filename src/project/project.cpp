#include "aitraining/project.h"

#include <utility>

#include "aitraining/config/config.h"
#include "aitraining/project/training.h"
#include "executable.h"
#include "job.h"

namespace aitraining {

LLMTrainingParams::LLMTrainingParams() : TrainingParams(config::default_params()) {}

TrainingFailed::TrainingFailed(int exit_code)
    : EnvironmentError("Training failed with exit code: {}", exit_code), code(exit_code) {}

AutoTrainProject::AutoTrainProject(LLMTrainingParams params, std::string backend, bool process)
    : params_(std::move(params)), backend_(std::move(backend)), process_(process) {}

int AutoTrainProject::create() {
  if (backend_ != "local")
    throw UserError("Invalid backend: {} (this build runs on this machine only: local)", backend_);
  if (!process_)
    throw UserError(
        "process = false: data that an earlier run prepared is not kept by this program, which "
        "prepares it in each run; use process = true");
  // The job checks once more; here for the exception with every problem.
  const auto values = config::changed_values(params_, config::Secrets::kept);
  project::prepare(config::resolve_values(values, "LLMTrainingParams"));
  const project::JobEnd end = project::run_job_process(project::find_executable(), params_);
  if (end.code != 0) throw TrainingFailed(end.code);
  return end.pid;
}

}  // namespace aitraining
