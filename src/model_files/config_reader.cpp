#include "config_reader.h"

#include <cmath>

#include "aitraining/core/error.h"
#include "aitraining/format/strict_json.h"

namespace aitraining::model {

using Json = nlohmann::ordered_json;

// Products of two sizes must fit 63 bits.
constexpr int64_t kMaxSize = (int64_t{1} << 31) - 1;

const Json* ConfigReader::find(const std::string& key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

const Json& ConfigReader::need(const std::string& key) const {
  if (const Json* value = find(key)) return *value;
  throw UserError("{}: \"{}{}\" is missing", origin_, prefix_, key);
}

void ConfigReader::refuse(const std::string& key, const std::string& what) const {
  const Json* value = find(key);
  throw UserError("{}: \"{}{}\" is {}; {}", origin_, prefix_, key,
                  value ? format::printable(value->dump(-1, ' ', false, Json::error_handler_t::replace)) : "missing", what);
}

int64_t ConfigReader::size(const std::string& key, std::optional<int64_t> fallback) const {
  if (fallback && !has(key)) return *fallback;
  const Json& value = need(key);
  if (!value.is_number_integer() || value < 1 || value > kMaxSize) refuse(key, "a whole number from 1 to 2147483647 is needed");
  return value.get<int64_t>();
}

double ConfigReader::positive(const std::string& key, std::optional<double> fallback) const {
  if (fallback && !has(key)) return *fallback;
  const Json& value = need(key);
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0)
    refuse(key, "a number above 0 is needed");
  return value.get<double>();
}

bool ConfigReader::flag(const std::string& key, bool fallback) const {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_boolean()) refuse(key, "true or false is needed");
  return value->get<bool>();
}

std::string ConfigReader::text(const std::string& key, const std::string& fallback) const {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_string()) refuse(key, "a string is needed");
  return value->get<std::string>();
}

ConfigReader ConfigReader::child(const std::string& key) const {
  const Json& value = need(key);
  if (!value.is_object()) refuse(key, "an object is needed");
  return ConfigReader(value, origin_, prefix_ + key + ".");
}

}  // namespace aitraining::model
