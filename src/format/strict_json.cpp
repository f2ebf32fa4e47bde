#include "aitraining/format/strict_json.h"

#include <set>
#include <type_traits>
#include <vector>

#include "aitraining/core/error.h"

namespace aitraining::format {
namespace {

// An ordered object looks through all its keys for each new one; more than this would take minutes.
constexpr size_t kMaxOrderedKeys = 32768;

// Watches the parser's events. The parser itself keeps an explicit stack, but everything that later walks the document
// recurses, so the depth is cut while it is read.
template <class Json>
class Watcher {
 public:
  using Event = typename Json::parse_event_t;
  Watcher(const std::string& origin, int max_depth) : origin_(origin), max_depth_(max_depth) {}

  bool operator()(int depth, Event event, const Json& parsed) {
    switch (event) {
      case Event::object_start:
        check(depth);
        keys_.emplace_back();
        break;
      case Event::array_start:
        check(depth);
        break;
      case Event::key:
        add_key(parsed.template get_ref<const std::string&>());
        break;
      case Event::object_end:
        keys_.pop_back();
        break;
      default:
        break;
    }
    return true;
  }

 private:
  void add_key(const std::string& key) {
    if (!keys_.back().insert(key).second) throw UserError("{}: the key \"{}\" is there twice", origin_, printable(key));
    if (std::is_same_v<Json, nlohmann::ordered_json> && keys_.back().size() > kMaxOrderedKeys)
      throw UserError("{}: an object of more than {} keys", origin_, kMaxOrderedKeys);
  }
  void check(int depth) const {
    if (depth >= max_depth_) throw UserError("{}: JSON nested deeper than {} levels", origin_, max_depth_);
  }
  const std::string& origin_;
  int max_depth_;
  std::vector<std::set<std::string>> keys_;
};

template <class Json>
Json parse(std::string_view text, const std::string& origin, int max_depth) {
  Watcher<Json> watcher(origin, max_depth);
  try {
    return Json::parse(text.begin(), text.end(), [&](int depth, typename Json::parse_event_t event, Json& parsed) {
      return watcher(depth, event, parsed);
    });
  } catch (const typename Json::exception& e) {
    throw UserError("{}: not valid JSON ({})", origin, printable(e.what()));
  }
}

}  // namespace

nlohmann::ordered_json parse_strict_json(std::string_view text, const std::string& origin, int max_depth) {
  return parse<nlohmann::ordered_json>(text, origin, max_depth);
}

nlohmann::json parse_strict_json_sorted(std::string_view text, const std::string& origin, int max_depth) {
  return parse<nlohmann::json>(text, origin, max_depth);
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
