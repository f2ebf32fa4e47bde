#include "json_text.h"

#include <vector>

#include <fmt/format.h>

namespace aitraining::data {

namespace {

using nlohmann::ordered_json;

// Templates and dump() recurse, so depth must have a limit.
constexpr size_t kMaxDepth = 256;

class Builder final : public nlohmann::json_sax<ordered_json> {
 public:
  explicit Builder(int text_depth) : text_depth_(static_cast<size_t>(text_depth)) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override {
    return keeps_text() ? put(std::to_string(value)) : put(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return keeps_text() ? put(std::to_string(value)) : put(value);
  }
  bool number_float(number_float_t value, const string_t& written) override {
    return keeps_text() ? put(written) : put(value);
  }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(ordered_json::object()); }
  bool start_array(std::size_t) override { return open(ordered_json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    member_ = &(*open_.back())[std::move(name)];
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    std::string message = error.what();
    // "[json.exception...] parse error at line 1, column 5: syntax error ..." -> "syntax error ..."
    if (const auto bracket = message.find("] "); message.starts_with('[') && bracket != std::string::npos)
      message.erase(0, bracket + 2);
    if (const auto column = message.find("column "); message.starts_with("parse error at") && column != std::string::npos)
      if (const auto colon = message.find(": ", column); colon != std::string::npos) message.erase(0, colon + 2);
    result.problem = JsonProblem{position == 0 ? 0 : position - 1, std::move(message)};
    return false;
  }

  JsonResult result;

 private:
  bool keeps_text() const { return text_depth_ > 0 && open_.size() == text_depth_ && open_.back()->is_object(); }

  ordered_json* place(ordered_json value) {
    ordered_json* target = &result.value;
    if (!open_.empty() && open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    if (!open_.empty()) target = member_;
    *target = std::move(value);
    return target;
  }

  bool put(ordered_json value) {
    place(std::move(value));
    return true;
  }

  bool open(ordered_json container) {
    if (open_.size() == kMaxDepth) {
      result.problem = JsonProblem{0, fmt::format("nested deeper than {} levels", kMaxDepth)};
      return false;
    }
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  size_t text_depth_;
  std::vector<ordered_json*> open_;  // the path to the value being read; only its last element grows
  ordered_json* member_ = nullptr;
};

}  // namespace

JsonResult parse_json(std::string_view text, int text_depth) {
  Builder builder(text_depth);
  ordered_json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder.result);
}

}  // namespace aitraining::data
