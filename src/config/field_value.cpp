#include "field_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "aitraining/core/strings.h"
#include "text_check.h"

namespace aitraining::config {
namespace {

template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<std::optional<T>> {
  using type = T;
};

// Calls f with the member pointer and a null pointer of the plain type that the member holds.
template <class F>
auto with_type(const Field& field, F f) {
  return std::visit(
      [&]<class T>(T TrainingParams::* member) {
        return f(member, static_cast<typename Plain<T>::type*>(nullptr));
      },
      field.member);
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  Number number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

std::optional<Value> parse(std::string_view text, bool*) {
  const std::string word = to_lower(text);
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  return std::nullopt;
}
std::optional<Value> parse(std::string_view text, int64_t*) {
  return parse_number<int64_t>(text);
}
std::optional<Value> parse(std::string_view text, double*) {
  return parse_number<double>(text);
}
std::optional<Value> parse(std::string_view text, std::string*) {
  return std::string(text);
}

// ROLE=COLUMN,ROLE=COLUMN or a JSON object of texts.
std::optional<Value> parse(std::string_view text, StringMap*) {
  StringMap map;
  if (trim(text).starts_with("{")) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return std::nullopt;
    for (const auto& [key, value] : json.items()) {
      if (!value.is_string()) return std::nullopt;
      map[key] = value.get<std::string>();
    }
    return map;
  }
  for (const std::string& part : split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == 0 || equals == std::string::npos) return std::nullopt;
    const std::string key(trim(std::string_view(part).substr(0, equals)));
    map[key] = trim(std::string_view(part).substr(equals + 1));
  }
  return map.empty() ? std::nullopt : std::optional<Value>(map);
}

bool is_null_word(std::string_view text) {
  const std::string word = to_lower(text);
  return word == "none" || word == "null";
}

const std::string* find_synonym(const Field& field, std::string_view text) {
  const std::string word = to_lower(text);
  for (const auto& [written, taken] : field.synonyms) {
    if (written == word) return &taken;
  }
  return nullptr;
}

std::string wrong_type(const Field& field, std::string_view text) {
  if (text.empty()) return fmt::format("the value is empty; {} is due", type_name(field));
  return fmt::format("'{}' is not {}", text, type_name(field));
}

std::string range_text(const Range& range) {
  std::string text;
  if (range.min && range.max) {
    text = fmt::format("from {}{} to {}{}", range.above_min ? "above " : "", *range.min,
                       range.below_max ? "below " : "", *range.max);
  } else if (range.min) {
    text = range.above_min ? fmt::format("above {}", *range.min)
                           : fmt::format("{} or more", *range.min);
  }
  if (range.or_else) text += fmt::format(", or {}", *range.or_else);
  return text;
}

bool in_range(const Range& range, double number) {
  if (range.or_else && number == *range.or_else) return true;
  if (range.min && (range.above_min ? number <= *range.min : number < *range.min)) return false;
  return !range.max || (range.below_max ? number < *range.max : number <= *range.max);
}

Verdict check_choice(const Field& field, const std::string& value) {
  if (!field.missing.empty() && value.empty()) return {Fault::missing, std::string(field.missing)};
  if (field.choices.empty() || std::ranges::count(field.choices, value)) return {};
  if (std::ranges::count(field.later, value)) {
    return {Fault::unsupported,
            fmt::format("not supported yet in this build: {} {} (available: {}){}{}", field.name,
                        value, join(field.choices, ", "), field.later_advice.empty() ? "" : ". ",
                        field.later_advice)};
  }
  if (!field.wrong_choice.empty())
    return {Fault::wrong, fmt::format(fmt::runtime(field.wrong_choice), value)};
  const auto near = nearest(value, field.choices);
  return {Fault::wrong, fmt::format("'{}' is not one of {}{}", value, join(field.choices, ", "),
                                    near ? fmt::format("; did you mean '{}'?", *near) : "")};
}

Verdict check_range(const Field& field, const Value& value) {
  std::optional<double> number;
  if (const auto* whole = std::get_if<int64_t>(&value)) number = static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  if (!number || in_range(field.range, *number)) return {};
  return {Fault::wrong, fmt::format("{} is out of range: {} is {}", value_text(field, value),
                                    field.name, range_text(field.range))};
}

// What asks for nothing: the default, "unset", and "off" where undecided is the default.
bool asks_for_nothing(const Field& field, const Value& value) {
  return value == field.initial || std::holds_alternative<std::monostate>(value) ||
         (field.optional() && value == Value(false));
}

}  // namespace

Value get_value(const TrainingParams& params, const Field& field) {
  return with_type(field, [&](auto member, auto*) -> Value {
    const auto& held = params.*member;
    if constexpr (requires { held.has_value(); }) {
      return held ? Value(*held) : Value();
    } else {
      return Value(held);
    }
  });
}

void set_value(TrainingParams& params, const Field& field, const Value& value) {
  with_type(field, [&]<class T>(auto member, T*) {
    if (std::holds_alternative<std::monostate>(value)) {
      params.*member = {};
    } else {
      params.*member = std::get<T>(value);
    }
  });
}

std::string assign_null(TrainingParams& params, const Field& field) {
  if (!field.null_means.empty()) {
    set_value(params, field, std::string(field.null_means));
  } else if (field.optional()) {
    set_value(params, field, Value());
  } else {
    return fmt::format("has no value; {} is due (without the key it is {})", type_name(field),
                       value_text(field, field.initial));
  }
  return {};
}

std::string assign_text(TrainingParams& params, const Field& field, std::string_view text) {
  if (const std::string* taken = find_synonym(field, text)) {
    if (taken->empty()) return assign_null(params, field);
    text = *taken;
  } else if (is_null_word(text) && (field.optional() || !field.null_means.empty())) {
    return assign_null(params, field);
  }
  // Parameters go to a JSON file, which holds UTF-8 only.
  if (const auto bad = find_bad_character(text)) return "the value holds " + bad->what;
  const auto value = with_type(field, [&](auto, auto* type) { return parse(text, type); });
  if (!value) return wrong_type(field, text);
  set_value(params, field, *value);
  return {};
}

std::string assign_map(TrainingParams& params, const Field& field, const StringMap& map) {
  if (!field.map()) return fmt::format("{} is due, found a map", type_name(field));
  set_value(params, field, map);
  return {};
}

std::string assign_json(TrainingParams& params, const Field& field,
                        const nlohmann::ordered_json& value) {
  // In the resolved file null is "unset", also where the user's own null means something else.
  if (value.is_null() && field.optional()) {
    set_value(params, field, Value());
    return {};
  }
  const Value taken = with_type(field, [&]<class T>(auto, T*) -> Value {
    if constexpr (std::is_same_v<T, bool>)
      return value.is_boolean() ? Value(value.get<bool>()) : Value();
    if constexpr (std::is_same_v<T, int64_t>)
      return value.is_number_integer() ? Value(value.get<int64_t>()) : Value();
    if constexpr (std::is_same_v<T, double>)
      return value.is_number() ? Value(value.get<double>()) : Value();
    if constexpr (std::is_same_v<T, std::string>)
      return value.is_string() ? Value(value.get<std::string>()) : Value();
    if constexpr (std::is_same_v<T, StringMap>)
      return parse(value.dump(), static_cast<StringMap*>(nullptr)).value_or(Value());
  });
  if (std::holds_alternative<std::monostate>(taken)) return wrong_type(field, value.dump());
  set_value(params, field, taken);
  return {};
}

nlohmann::ordered_json to_json_value(const Value& value) {
  return std::visit(
      []<class T>(const T& v) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<T, std::monostate>)
          return nullptr;
        else
          return v;
      },
      value);
}

std::string unavailable_text(const Field& field) {
  if (!field.never.empty()) return fmt::format("not supported: {} ({})", field.name, field.never);
  return fmt::format("not supported yet in this build: {} ({})", field.name, field.not_yet);
}

Verdict check_value(const TrainingParams& params, const Field& field) {
  const Value value = get_value(params, field);
  if (!field.available()) {
    if (asks_for_nothing(field, value)) return {};
    return {Fault::unsupported, unavailable_text(field)};
  }
  if (const auto* text = std::get_if<std::string>(&value)) return check_choice(field, *text);
  return check_range(field, value);
}

std::string type_name(const Field& field) {
  return with_type(field, []<class T>(auto, T*) -> std::string {
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_same_v<T, int64_t>) return "a whole number";
    if constexpr (std::is_same_v<T, double>) return "a number";
    if constexpr (std::is_same_v<T, StringMap>) return "a map of texts (NAME=VALUE,... or JSON)";
    return "a text";
  });
}

std::string value_text(const Field& field, const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return "unset";
  if (field.secret) return "***";
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return to_json_value(value).dump();
}

}  // namespace aitraining::config
