#include <filesystem>

#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "draft.h"
#include "field_value.h"
#include "project_name.h"

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

std::string check_hub(const TrainingParams& p) {
  if (!p.push_to_hub) return {};
  return "not supported yet in this build: push_to_hub (remove it and upload the project folder, "
         "for example with "
         "`huggingface-cli upload`)";
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

struct Relation {
  std::string_view field;
  Check check;
};
constexpr Relation kRelations[] = {
    {"project_name", check_name},           {"chat_template", check_templates},
    {"text_column", check_column},          {"quantization", check_quantization},
    {"zero3_resident", check_resident},     {"offload_param", check_offload_param},
    {"push_to_hub", check_hub},
};

}  // namespace

std::vector<Problem> find_problems(const TrainingParams& params) {
  std::vector<Problem> problems;
  for (const Field& field : field_table()) {
    std::string text = check_value(params, field);
    if (text.empty()) continue;
    const bool missing = text == field.missing;
    problems.push_back({&field, std::move(text), missing});
  }
  for (const auto& [name, check] : kRelations) {
    std::string text = check(params);
    if (!text.empty()) problems.push_back({find_field(name), std::move(text)});
  }
  return problems;
}

std::vector<std::string> validate(const TrainingParams& params) {
  std::vector<std::string> sentences;
  for (const auto& [field, text, missing] : find_problems(params)) {
    sentences.push_back(missing ? text : fmt::format("{}: {}", field->name, text));
  }
  return sentences;
}

}  // namespace aitraining::config
