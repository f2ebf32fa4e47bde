// A forecast for people and for programs.
#include <fmt/format.h>

#include "aitraining/core/strings.h"
#include "aitraining/forecast/forecast.h"
#include "sharding.h"

namespace aitraining::forecast {
namespace {

using Json = nlohmann::ordered_json;

std::string bytes(int64_t n) {
  return human_bytes(static_cast<uint64_t>(n));
}

// A word of the command line as a shell takes it.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-./=:,+@%") == std::string::npos;
  if (plain) return word;
  std::string result = "'";
  for (char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string line(const std::string& label, const std::string& value) {
  return fmt::format("  {:<18} {}\n", label, value);
}

std::string device_text(const Forecast& f) {
  if (f.plan.device == "cpu") return "cpu";
  return fmt::format("cuda ({})", join(f.devices.names, ", "));
}

std::string machines_text(const Forecast& f) {
  return f.plan.nnodes > 1 ? fmt::format(" on each of {} machines,", f.plan.nnodes) : "";
}

std::string launch_text(const Forecast& f) {
  const auto& params = f.config.params;
  std::string text = "Launch\n";
  text +=
      line("task", fmt::format("{}, trainer {}", config::task_name(f.config.task), params.trainer));
  text += line("ranks", fmt::format("{}{} on {}, {} thread(s) each", f.plan.ranks, machines_text(f),
                                    device_text(f), f.plan.threads_per_rank));
  text += line("engine", f.plan.engine);
  if (f.plan.engine == "ddp") text += line("", "ddp_find_unused_parameters False");
  text += line("precision", fmt::format("{} ({})", f.plan.precision, f.plan.precision_reason));
  text += line(
      "effective batch",
      fmt::format("{} rows x {} accumulation x {} rank(s) = {} rows an update", params.batch_size,
                  params.gradient_accumulation, f.plan.world_size(), f.rows_per_update));
  text += line("updates", f.rows ? fmt::format("{} ({} rows, {} epoch(s))", human_count(f.updates),
                                               human_count(*f.rows), params.epochs)
                                 : fmt::format("{} per 1000 rows and epoch", f.updates));
  if (!f.rows_problem.empty()) text += line("", "data: " + f.rows_problem);
  const Json zero = zero_configuration(f);
  if (!zero.is_null()) text += line("zero", zero.dump());
  return text;
}

std::string fit_text(const Forecast& f) {
  const ModelForecast& m = *f.model;
  if (!m.fits)
    return line("fits",
                "not known: the memory of the device is not (--assume-devices 8x80GiB names it)");
  std::string text = line("fits", fmt::format("{}: a rank may use {}", *m.fits ? "yes" : "NO",
                                              human_bytes(f.capacity)));
  if (*m.fits) return text;
  if (m.remedies.empty())
    return text + line("", "no change of the flags makes it fit here: take more or larger devices");
  for (const Remedy& r : m.remedies)
    text += line("what would fit", fmt::format("{} ({} a rank)", r.flags, bytes(r.bytes)));
  return text;
}

std::string model_text(const Forecast& f) {
  if (!f.model) return fmt::format("Model\n  {}\n", f.model_problem);
  const ModelForecast& m = *f.model;
  std::string text = "Model\n";
  text += line("architecture", fmt::format("{}, {} parameters, {} trained", m.architecture,
                                           human_count(m.parameters), human_count(m.trained)));
  text += line("rows", fmt::format("cut at {}; a micro-batch has at most {} tokens", m.length_limit,
                                   human_count(m.tokens_per_micro_batch)));
  text += fmt::format("Memory of a rank ({})\n",
                      f.plan.device == "cuda" ? "of its GPU" : "resident in host memory");
  for (const MemoryClass& c : m.memory) text += line(c.name, bytes(c.bytes));
  text += line("total", bytes(m.memory_total)) + fit_text(f);
  text += "Disk and network\n";
  text += line("final model", bytes(m.final_model_bytes));
  text += line("a checkpoint", bytes(m.checkpoint_bytes));
  text += line("sent by a rank", bytes(m.traffic_per_update) + " an update");
  return text;
}

std::string command_text(const Forecast& f) {
  std::vector<std::string> words;
  for (const std::string& word : f.command) words.push_back(quoted(word));
  return fmt::format("What the reference would have run\n  {}\n", join(words, " "));
}

std::string notes_text(const Forecast& f) {
  std::string text;
  for (const std::string& note : f.config.unsupported)
    text += fmt::format("  training refuses this: {}\n", note);
  for (const std::string& note : f.plan.notes) text += fmt::format("  {}\n", note);
  for (const std::string& note : f.config.notes) text += fmt::format("  {}\n", note);
  return text.empty() ? "" : "Notes\n" + text;
}

std::string explain_text(const Forecast& f) {
  std::string text = "Parameters\n";
  for (const auto& value : config::explain(f.config))
    text += fmt::format("  {} = {} ({})\n", value.name, value.value, value.origin);
  text += "Environment of each rank (beside RANK, LOCAL_RANK, WORLD_SIZE and the like)\n";
  for (const auto& [name, value] : f.plan.environment)
    text += fmt::format("  {}={}\n", name, value);
  return text;
}

Json device_json(const launch::Gpu& gpu) {
  return {{"name", gpu.name},
          {"uuid", gpu.uuid},
          {"memory_total", gpu.memory_total},
          {"memory_free", gpu.memory_free},
          {"compute_capability", gpu.compute_capability},
          {"pci_bus", gpu.pci_bus},
          {"numa_node", gpu.numa_node},
          {"cores", gpu.cores}};
}

Json rank_environments(const Forecast& f) {
  Json all = Json::array();
  // Those of this machine.
  const auto first = static_cast<int>(f.config.params.node_rank) * f.plan.ranks;
  for (int rank = 0; rank < f.plan.ranks; ++rank) {
    Json one{{"RANK", std::to_string(first + rank)},
             {"LOCAL_RANK", std::to_string(rank)},
             {"WORLD_SIZE", std::to_string(f.plan.world_size())},
             {"LOCAL_WORLD_SIZE", std::to_string(f.plan.ranks)},
             {"OMP_NUM_THREADS", std::to_string(f.plan.threads_per_rank)}};
    for (const auto& [name, value] : f.plan.environment) one[name] = value;
    all.push_back(one);
  }
  return all;
}

Json model_json(const Forecast& f) {
  if (!f.model) return {{"problem", f.model_problem}};
  const ModelForecast& m = *f.model;
  Json memory = Json::object(), remedies = Json::array();
  for (const MemoryClass& c : m.memory) memory[c.name] = c.bytes;
  memory["total"] = m.memory_total;
  for (const Remedy& r : m.remedies) remedies.push_back({{"flags", r.flags}, {"total", r.bytes}});
  return {{"architecture", m.architecture},
          {"parameters", m.parameters},
          {"trained_parameters", m.trained},
          {"tokens_per_micro_batch", m.tokens_per_micro_batch},
          {"memory_per_rank", memory},
          {"fits", m.fits ? Json(*m.fits) : Json(nullptr)},
          {"remedies", remedies},
          {"final_model_bytes", m.final_model_bytes},
          {"checkpoint_bytes", m.checkpoint_bytes},
          {"sent_per_update_bytes", m.traffic_per_update}};
}

}  // namespace

std::string to_text(const Forecast& f, bool explain) {
  return launch_text(f) + model_text(f) + command_text(f) + notes_text(f) +
         (explain ? explain_text(f) : "");
}

Json to_json(const Forecast& f, bool explain) {
  const auto& params = f.config.params;
  Json gpus = Json::array(), notes = f.plan.notes;
  for (const auto& gpu : f.devices.gpus) gpus.push_back(device_json(gpu));
  for (const std::string& note : f.config.notes) notes.push_back(note);
  Json all{{"task", config::task_name(f.config.task)},
           {"trainer", params.trainer},
           {"ranks", f.plan.world_size()},
           {"nnodes", f.plan.nnodes},
           {"ranks_per_node", f.plan.ranks},
           {"device", f.plan.device},
           {"engine", f.plan.engine},
           {"precision", f.plan.precision},
           {"precision_reason", f.plan.precision_reason},
           {"threads_per_rank", f.plan.threads_per_rank},
           {"ddp_find_unused_parameters", false},
           {"gpus", gpus},
           {"batch",
            {{"batch_size", params.batch_size},
             {"gradient_accumulation", params.gradient_accumulation},
             {"rows_per_update", f.rows_per_update}}},
           {"rows", f.rows ? Json(*f.rows) : Json(nullptr)},
           {f.rows ? "updates" : "updates_per_1000_rows", f.updates},
           {"capacity_per_rank", f.capacity > 0 ? Json(f.capacity) : Json(nullptr)},
           {"model", model_json(f)},
           {"zero", zero_configuration(f)},
           {"environment", rank_environments(f)},
           {"accelerate_command", f.command},
           {"unsupported", f.config.unsupported},
           {"notes", notes}};
  if (!f.rows_problem.empty()) all["data_problem"] = f.rows_problem;
  if (!explain) return all;
  for (const auto& value : config::explain(f.config))
    all["parameters"].push_back(
        {{"name", value.name}, {"value", value.value}, {"origin", value.origin}});
  return all;
}

}  // namespace aitraining::forecast
