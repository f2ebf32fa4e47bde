// One-letter slips of every name: deletion, swap of neighbours, doubling.
#include <algorithm>
#include <set>

#include "command_flags.h"
#include "config_test_support.h"
#include "field_table.h"
#include "field_text.h"
#include "yaml_schema.h"

namespace aitraining::config {
namespace {

// Without those that are the name itself or have an empty, or only separators.
std::set<std::string> slips(const std::string& name) {
  std::set<std::string> all;
  for (size_t i = 0; i < name.size(); ++i) {
    all.insert(name.substr(0, i) + name.substr(i + 1));
    all.insert(name.substr(0, i) + name[i] + name.substr(i));
    if (i + 1 == name.size()) continue;
    std::string swapped = name;
    std::swap(swapped[i], swapped[i + 1]);
    all.insert(swapped);
  }
  all.erase(name);
  all.erase("");
  return all;
}

// The part of the message that is about one name.
std::string line_about(const std::string& message, const std::string& name) {
  for (const std::string& end : {std::string("; "), std::string(" "), std::string("\n")}) {
    const size_t at = message.find(name + end);
    if (at != std::string::npos) return message.substr(at, message.find('\n', at) - at);
  }
  return message.ends_with(name) ? name : "";
}

std::string word_of(Task task) {
  return std::string(task_name(task));
}

std::set<std::string> accepted_flags(Task task) {
  std::set<std::string> flags{"-h", "-v"};
  for (const std::string& form : command_flag_forms())
    flags.insert(form.substr(0, form.find_first_of(" ,")));
  for (const Field* field : fields_of(task)) {
    for (const std::string& flag : flag_spellings(*field)) flags.insert(flag);
  }
  return flags;
}

void check_flag(Task task, const std::string& flag, const std::set<std::string>& accepted) {
  std::vector<std::string> wrong, arguments{word_of(task), "--train"};
  for (const std::string& slip : slips(flag.substr(2))) {
    std::string written = "--" + slip, hyphens = written;
    std::ranges::replace(hyphens, '_', '-');
    // Itself a name, or no longer a flag of its own ("--" and a separator).
    if (accepted.contains(hyphens) || slip.starts_with("-")) continue;
    wrong.push_back(written);
  }
  for (const std::string& written : wrong) arguments.push_back(written + "=1");
  const std::string message = refusal(arguments);
  for (const std::string& written : wrong) {
    const std::string line = line_about(message, "unrecognized arguments: " + written);
    EXPECT_TRUE(has(line, " " + flag + " or ") || has(line, " " + flag + "?"))
        << written << " of " << flag << ": " << line;
  }
}

TEST(Slips, OfEveryFlagGetTheRightSuggestion) {
  for (Task task : kTasks) {
    const std::set<std::string> accepted = accepted_flags(task);
    for (const std::string& flag : accepted) {
      if (flag.starts_with("--")) check_flag(task, flag, accepted);
    }
  }
}

using SlipsInYaml = ConfigTest;

void check_key(const std::string& path, const YamlSection& section, const std::string& key,
               const std::string& message) {
  const auto known = section.known();
  for (const std::string& slip : slips(key)) {
    if (std::ranges::count(known, slip) || slip.starts_with("-")) continue;
    const std::string line = line_about(message, "unknown key '" + slip + "'");
    EXPECT_TRUE(has(line, "'" + key + "'") || has(line, ": it belongs "))
        << slip << " of " << key << " in " << path << ": " << line;
  }
}

TEST_F(SlipsInYaml, OfEveryKeyGetTheRightSuggestion) {
  for (Task task : kTasks) {
    for (const char* path : {"", "data", "data.column_mapping", "hub", "params"}) {
      const YamlSection& section = *yaml_section(task, path);
      for (const std::string& key : section.known()) {
        std::string text = "task: " + word_of(task) + "\nbackend: local\n", indent;
        for (const std::string& part :
             {std::string(path).substr(0, std::string(path).find('.')),
              std::string(path) == "data.column_mapping" ? std::string("column_mapping")
                                                         : std::string()}) {
          if (part.empty()) continue;
          text += indent + part + ":\n";
          indent += "  ";
        }
        for (const std::string& slip : slips(key)) {
          const auto known = section.known();
          if (!std::ranges::count(known, slip))
            text += indent + "? " + slip + "\n" + indent + ": 1\n";
        }
        check_key(path, section, key, refusal({"--config", write(text)}));
      }
    }
  }
}

TEST(Slips, TiesAreAllNamed) {
  EXPECT_HAS(refusal(llm({"--rl-top-=1"})), "did you mean --rl-top-k or --rl-top-p?");
  EXPECT_HAS(refusal(llm({"--no-merge-adaptr"})), "did you mean --no-merge-adapter?");
  EXPECT_HAS(refusal(llm({"--confg", "x"})), "did you mean --config?");
  EXPECT_HAS(refusal(llm({"--target-column", "x"})),
             "unrecognized arguments: --target-column (a parameter of seq2seq)");
}

}  // namespace
}  // namespace aitraining::config
