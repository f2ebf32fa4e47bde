#include "references.h"

#include <cstdlib>

#include <fmt/format.h>

namespace aitraining::config {
namespace {

bool is_name(const std::string& text) {
  constexpr const char* kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  return !text.empty() && text.find_first_not_of(kLetters) == std::string::npos &&
         (text[0] < '0' || text[0] > '9');
}

}  // namespace

// What is in braces but no name of a variable stays as it is: templates and regular expressions
// have braces too.
Expanded expand_references(const std::string& text) {
  Expanded result{.text = {}};
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find("${", at);
    const size_t end = begin == std::string::npos ? begin : text.find('}', begin);
    if (end == std::string::npos) {
      result.text += text.substr(at);
      break;
    }
    result.text += text.substr(at, begin - at);
    const std::string name = text.substr(begin + 2, end - begin - 2);
    at = end + 1;
    if (!is_name(name)) {
      result.text += text.substr(begin, at - begin);
      continue;
    }
    const char* value = std::getenv(name.c_str());
    if (!value)
      result.problem = fmt::format("the environment variable {} is not set", name);
    else
      result.text += value;
    result.names.push_back(name);
  }
  return result;
}

}  // namespace aitraining::config
