#pragma once
// Typed access to the keys of a config.json; every error names file, key and value.
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace aitraining::model {

class ConfigReader {
 public:
  // `prefix` stands before the keys in messages ("rope_parameters.").
  ConfigReader(const nlohmann::ordered_json& json, std::string origin, std::string prefix = "")
      : json_(json), origin_(std::move(origin)), prefix_(std::move(prefix)) {}

  bool has(const std::string& key) const { return find(key) != nullptr; }  // there and not null
  // Whole numbers from 1 to 2^31 - 1. Without a fallback a missing key is an error.
  int64_t size(const std::string& key, std::optional<int64_t> fallback = std::nullopt) const;
  double positive(const std::string& key, std::optional<double> fallback = std::nullopt) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  const nlohmann::ordered_json* find(const std::string& key) const;
  // The member, an object, as a reader of its own.
  ConfigReader child(const std::string& key) const;

  const nlohmann::ordered_json& json() const { return json_; }
  const std::string& origin() const { return origin_; }
  // "{origin}: {key} is {value}; {what}"
  [[noreturn]] void refuse(const std::string& key, const std::string& what) const;

 private:
  const nlohmann::ordered_json& need(const std::string& key) const;
  const nlohmann::ordered_json& json_;
  std::string origin_, prefix_;
};

}  // namespace aitraining::model
