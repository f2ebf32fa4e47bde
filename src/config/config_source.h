#pragma once
#include <string>

namespace aitraining::config {

bool is_url(const std::string& path);  // http:// or https://
// For messages: a URL without user name, password and query.
std::string shown_name(const std::string& path);
// The text of a configuration file on disk or behind a URL. UserError.
std::string read_config_text(const std::string& path);

}  // namespace aitraining::config
