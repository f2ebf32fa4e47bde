#include "project_name.h"

#include <cctype>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "aitraining/config/config.h"

namespace aitraining::config {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLongestName = 50;

fs::path resolve(const std::string& project_name) {
  fs::path path(project_name);
  if (path.is_relative()) {
    const char* base = std::getenv("AUTOTRAIN_PROJECTS_DIR");
    path = fs::path(base && *base ? base : ".") / path;
  }
  path = fs::absolute(path).lexically_normal();
  return path.has_filename() ? path : path.parent_path();  // "name/" is "name"
}

// The whole character that begins at `at`, also when it takes several bytes.
std::string character(const std::string& text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  const std::string bytes = text.substr(at, end - at);
  if (bytes == " ") return "a blank";
  if (std::iscntrl(static_cast<unsigned char>(bytes[0]))) {
    return fmt::format("the control character 0x{:02x}", static_cast<unsigned char>(bytes[0]));
  }
  return "'" + bytes + "'";
}

}  // namespace

std::string project_name_problem(const std::string& project_name) {
  if (project_name.front() == '~')
    return "begins with ~, which only a shell replaces: write the path out";
  const std::string name = resolve(project_name).filename().string();
  if (name.empty()) return fmt::format("'{}' has no folder name", project_name);
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if ((c < 0x80 && std::isalnum(c)) || c == '-' || c == '_' || c == '.') continue;
    return fmt::format(
        "'{}' holds {}: project_name must be alphanumeric but can contain hyphens, underscores or "
        "dots "
        "(its last component; folders above it may have any name)",
        name, character(name, i));
  }
  if (name.size() > kLongestName) {
    return fmt::format("project_name basename cannot be more than {} characters ('{}' has {})",
                       kLongestName, name, name.size());
  }
  return {};
}

std::string project_folder(const TrainingParams& params) {
  return resolve(params.project_name).string();
}

}  // namespace aitraining::config
