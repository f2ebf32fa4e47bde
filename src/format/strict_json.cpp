#include "aitraining/format/strict_json.h"

#include <set>
#include <vector>

#include "aitraining/core/error.h"

namespace aitraining::format {
namespace {

// An ordered object looks through all its keys for each new one; more than this would take minutes.
constexpr size_t kMaxOrderedKeys = 32768;

// A first pass that builds nothing. The parser keeps an explicit stack, but everything that later walks a document
// recurses, so the depth is limited here. (The parser's own callbacks would do, in quadratic time.)
class Checker : public nlohmann::json_sax<nlohmann::json> {
 public:
  Checker(const std::string& origin, int max_depth, size_t max_keys)
      : origin_(origin), max_depth_(static_cast<size_t>(max_depth)), max_keys_(max_keys) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }

  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) throw UserError("{}: the key \"{}\" is there twice", origin_, printable(key));
    if (keys_.back().size() > max_keys_) throw UserError("{}: an object of more than {} keys", origin_, max_keys_);
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    throw UserError("{}: not valid JSON ({})", origin_, printable(e.what()));
  }

 private:
  bool enter() {
    if (keys_.size() >= max_depth_) throw UserError("{}: JSON nested deeper than {} levels", origin_, max_depth_);
    keys_.emplace_back();
    return true;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  const std::string& origin_;
  size_t max_depth_, max_keys_;
  std::vector<std::set<std::string>> keys_;  // of the objects (and, empty, arrays) that are open
};

void check(std::string_view text, const std::string& origin, int max_depth, size_t max_keys) {
  Checker checker(origin, max_depth, max_keys);
  nlohmann::json::sax_parse(text.begin(), text.end(), &checker);
}

}  // namespace

nlohmann::ordered_json parse_strict_json(std::string_view text, const std::string& origin, int max_depth) {
  check(text, origin, max_depth, kMaxOrderedKeys);
  return nlohmann::ordered_json::parse(text.begin(), text.end());
}

nlohmann::json parse_strict_json_sorted(std::string_view text, const std::string& origin, int max_depth) {
  check(text, origin, max_depth, text.size());
  return nlohmann::json::parse(text.begin(), text.end());
}

std::string printable(std::string_view text) {
  constexpr size_t kLimit = 160;
  std::string out;
  for (const char c : text.substr(0, kLimit)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  // A cut inside a UTF-8 sequence would leave half a character behind.
  if (text.size() > kLimit) {
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0) out.pop_back();
    out += "...";
  }
  return out;
}

}  // namespace aitraining::format
