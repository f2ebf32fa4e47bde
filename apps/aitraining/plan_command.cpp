#include "plan_command.h"

#include <fmt/format.h>

#include "aitraining/forecast/forecast.h"
#include "aitraining/launch/environment_report.h"
#include "aitraining/launch/launch.h"

namespace aitraining {
namespace {

// Paths and variables are bytes; JSON is UTF-8.
std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

int plan(const config::ResolvedConfig& config, const config::PlanRequest& request) {
  launch::DeviceInventory devices = launch::probe_devices();
  if (request.assumed_devices) devices = launch::assume_devices(*request.assumed_devices, devices);
  auto inputs = launch::read_launch_inputs(config.params);
  inputs.task = config.task;
  launch::apply_cluster(launch::read_cluster(config.params), inputs);
  const auto decided = launch::make_plan(config.params, devices, inputs);
  const auto forecast = forecast::make_forecast(config, devices, decided);
  fmt::print("{}", request.json ? json_text(forecast::to_json(forecast, request.explain))
                                : forecast::to_text(forecast, request.explain));
  return 0;
}

int print_environment(const config::EnvironmentRequest& request) {
  const auto report = launch::describe_environment(AITRAINING_VERSION, launch::probe_devices(),
                                                   request.config_file);
  fmt::print("{}", request.json ? json_text(report) : launch::environment_text(report));
  return 0;
}

}  // namespace aitraining
