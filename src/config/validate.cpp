#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "draft.h"
#include "field_value.h"
#include "project_name.h"
#include "task.h"

namespace aitraining::config {
namespace {

using Check = std::string (*)(const TrainingParams&);

std::string check_quantization(const TrainingParams& p) {
  if (!p.quantization) return {};
  if (!p.peft) {
    return fmt::format(
        "quantization {} without peft: quantized weights cannot be trained themselves. Remove "
        "--quantization, or train adapters with --peft (quantized bases are not supported yet in "
        "this "
        "build)",
        *p.quantization);
  }
  return fmt::format(
      "not supported yet in this build: quantization {}; on every device, CPU and GPU, the frozen "
      "base "
      "is kept in fp32 or bf16. Remove --quantization, and use --mixed-precision bf16 to keep the "
      "base "
      "in 16 bit",
      *p.quantization);
}

bool is_zero3(const TrainingParams& p) {
  return p.distributed_backend == "zero3" || p.distributed_backend == "deepspeed";
}

std::string check_resident(const TrainingParams& p) {
  const std::string& text = p.zero3_resident;
  const bool number = !text.empty() && text.size() < 10 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  if (text != "auto" && !number) {
    return fmt::format("'{}' is neither a number of units (0, 1, ...) nor auto", text);
  }
  if (text == "0" || is_zero3(p)) return {};
  return "only ZeRO-3 has units that are not whole: remove --zero3-resident, or add "
         "--distributed-backend zero3";
}

std::string check_offload_param(const TrainingParams& p) {
  if (!p.offload_param || is_zero3(p)) return {};
  return "only ZeRO-3 keeps a part of the parameters that can lie elsewhere: remove "
         "--offload-param, or add --distributed-backend zero3";
}

std::string check_templates(const TrainingParams& p) {
  if (p.apply_chat_template || !p.chat_template || *p.chat_template == "none") return {};
  return fmt::format(
      "chat_template '{}' is given while apply_chat_template is false: remove one of the two",
      *p.chat_template);
}

std::string check_column(const TrainingParams& p) {
  // Names that the reference gives to its own columns.
  for (const char* reserved : {"autotrain_text", "autotrain_label", "autotrain_question",
                               "autotrain_answer", "autotrain_prompt", "autotrain_context",
                               "autotrain_rejected_text", "autotrain_prompt_start"}) {
    if (p.text_column == reserved) return fmt::format("{} is a reserved column name", reserved);
  }
  return {};
}

std::string check_name(const TrainingParams& p) {
  return p.project_name.empty() ? "" : project_name_problem(p.project_name);
}

std::string check_prompt_column(const TrainingParams& p) {
  if ((p.trainer != "dpo" && p.trainer != "orpo") || p.prompt_text_column) return {};
  return fmt::format(
      "{} training requires prompt_text_column to be specified. This column should contain the "
      "prompt/instruction text.",
      p.trainer == "dpo" ? "DPO" : "ORPO");
}

std::string check_rejected_column(const TrainingParams& p) {
  if ((p.trainer != "dpo" && p.trainer != "orpo") || p.rejected_text_column) return {};
  return fmt::format(
      "{} training requires rejected_text_column to be specified. This column should contain the "
      "rejected response text.",
      p.trainer == "dpo" ? "DPO" : "ORPO");
}

std::string check_reward_model(const TrainingParams& p) {
  if (p.trainer != "ppo" || p.rl_reward_model_path || p.model_ref) return {};
  return "PPO training requires a reward model! Give --rl-reward-model-path, or --model-ref";
}

std::string check_reward_path(const TrainingParams& p) {
  const auto& path = p.rl_reward_model_path;
  if (p.trainer != "ppo" || !path || path->find('/') != std::string::npos ||
      std::filesystem::exists(*path))
    return {};
  return "Reward model path does not exist: " + *path;
}

std::string check_teacher(const TrainingParams& p) {
  if (!p.use_distillation || p.teacher_model) return {};
  return "When use_distillation=True, you must specify teacher_model";
}

std::string check_hub_user(const TrainingParams& p) {
  if (!p.push_to_hub || p.username || p.repo_id) return {};
  return "Username must be specified for push to hub (--username, or HF_USERNAME)";
}

std::string check_hub_token(const TrainingParams& p) {
  if (!p.push_to_hub || p.token) return {};
  return "Token must be specified for push to hub (HF_TOKEN, or --token)";
}

std::string check_node_rank(const TrainingParams& p) {
  if (p.node_rank < p.nnodes || p.launcher) return {};
  return fmt::format("{} is not below nnodes ({}): machines are numbered 0 to {}", p.node_rank,
                     p.nnodes, p.nnodes - 1);
}

std::string check_master(const TrainingParams& p) {
  if (p.nnodes <= 1 || p.master_addr || p.launcher) return {};
  return "with several machines, --master-addr must name machine 0, as the others reach it";
}

std::string check_resume(const TrainingParams& p) {
  if (!p.resume_from_checkpoint || !p.resume_from_checkpoint->empty()) return {};
  return "it is empty: give a checkpoint-N folder or auto, or leave the flag out";
}

std::string check_launcher(const TrainingParams& p) {
  if (!p.launcher || (p.nnodes == 1 && p.node_rank == 0 && !p.nproc_per_node)) return {};
  return fmt::format("{} starts the ranks and counts them: remove --nnodes, --node-rank and "
                     "--nproc-per-node", *p.launcher);
}

struct Relation {
  std::string_view field;
  Fault fault;
  TaskSet tasks;
  Check check;
};
constexpr Relation kRelations[] = {
    {"project_name", Fault::wrong, kEveryTask, check_name},
    {"chat_template", Fault::wrong, kLlm, check_templates},
    {"text_column", Fault::wrong, kEveryTask, check_column},
    {"prompt_text_column", Fault::missing, kLlm, check_prompt_column},
    {"rejected_text_column", Fault::missing, kLlm, check_rejected_column},
    {"zero3_resident", Fault::wrong, kLlm, check_resident},
    {"offload_param", Fault::wrong, kLlm, check_offload_param},
    {"node_rank", Fault::wrong, kEveryTask, check_node_rank},
    {"master_addr", Fault::wrong, kEveryTask, check_master},
    {"launcher", Fault::wrong, kEveryTask, check_launcher},
    {"resume_from_checkpoint", Fault::wrong, kLlm, check_resume},
    {"rl_reward_model_path", Fault::missing, kLlm, check_reward_model},
    {"rl_reward_model_path", Fault::wrong, kLlm, check_reward_path},
    {"teacher_model", Fault::missing, kLlm, check_teacher},
    {"username", Fault::missing, kEveryTask, check_hub_user},
    {"token", Fault::missing, kEveryTask, check_hub_token},
    {"quantization", Fault::unsupported, kLlm, check_quantization},
};

}  // namespace

std::vector<Problem> find_problems(const TrainingParams& params, Task task) {
  std::vector<Problem> problems;
  for (const Field* field : fields_of(task)) {
    Verdict verdict = check_value(params, *field);
    if (verdict.fault != Fault::none) problems.push_back({field, std::move(verdict)});
  }
  for (const Relation& relation : kRelations) {
    if (!relation.tasks.contains(task)) continue;
    std::string text = relation.check(params);
    if (!text.empty())
      problems.push_back({find_field(relation.field, task), {relation.fault, std::move(text)}});
  }
  // What is wrong comes first: mending it makes sense whatever this build can do.
  std::ranges::stable_partition(
      problems, [](const Problem& problem) { return problem.verdict.fault != Fault::unsupported; });
  return problems;
}

std::vector<std::string> validate(const TrainingParams& params, Task task) {
  std::vector<std::string> sentences;
  for (const auto& [field, verdict] : find_problems(params, task)) {
    sentences.push_back(verdict.fault == Fault::missing
                            ? verdict.text
                            : fmt::format("{}: {}", field->name, verdict.text));
  }
  if (std::string text = task_not_supported(task); !text.empty()) sentences.push_back(text);
  return sentences;
}

}  // namespace aitraining::config
