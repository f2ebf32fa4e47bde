#pragma once
// The one declaration of every parameter. Command line, YAML, JSON, JSON schema, checks, help,
// completion, docs/parameters.md and the golden list of flags are all made from this table.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "aitraining/config/training_params.h"

namespace aitraining::config {

template <class T>
using MemberOf = T TrainingParams::*;
using Member =
    std::variant<MemberOf<bool>, MemberOf<int64_t>, MemberOf<double>, MemberOf<std::string>,
                 MemberOf<std::optional<bool>>, MemberOf<std::optional<int64_t>>,
                 MemberOf<std::optional<double>>, MemberOf<std::optional<std::string>>,
                 MemberOf<std::optional<StringMap>>>;
// monostate: null
using Value = std::variant<std::monostate, bool, int64_t, double, std::string, StringMap>;

// In the order of help and documentation.
enum class Group {
  basic,
  data,
  training,
  hyperparameters,
  sft,
  peft,
  preference,
  distillation,
  sweep,
  evaluation,
  ppo,
  grpo,
  advanced,
  inference,
  launcher,
  hub,
  other
};
inline constexpr int kGroupCount = static_cast<int>(Group::other) + 1;
std::string_view group_title(Group group);

struct TaskSet {
  unsigned bits;
  constexpr bool contains(Task task) const { return bits >> static_cast<unsigned>(task) & 1; }
};
inline constexpr TaskSet kLlm{1}, kSeq2Seq{2}, kVlm{4}, kNotLlm{6}, kLlmAndVlm{5}, kEveryTask{7};
inline constexpr Task kTasks[] = {Task::llm, Task::seq2seq, Task::vlm};

struct Range {
  std::optional<double> min{}, max{};
  bool below_max = false;           // max itself is not allowed
  bool above_min = false;           // min itself is not allowed
  std::optional<double> or_else{};  // one value outside that has a meaning of its own
};

// A parameter of one or more tasks. Tasks that differ in default or choices have a row each, with
// the same name and member.
struct Field {
  Member member;
  std::string_view name;
  Group group;
  TaskSet tasks = kLlm;
  Value initial{};
  std::string_view help;
  std::string_view trainers = "all";  // or a list, "dpo, orpo": for others it has no effect
  Range range{};
  std::vector<std::string> choices{};  // empty: any text
  std::vector<std::string> later{};    // values of the reference that this build cannot do yet
  std::string_view later_advice{};     // what to do instead
  // The feature is not in this build: only the default is accepted. Says what to do instead.
  std::string_view not_yet{};
  // The same for what a native program will never have (hooks into Python).
  std::string_view never{};
  std::vector<std::pair<std::string, std::string>> synonyms{};  // written -> taken as; "" is null
  std::string_view null_means{};  // what null stands for where it is not "unset"
  std::string_view
      wrong_choice{};  // the sentence for a value that is none of the choices; {} is the value
  std::string_view missing{};      // the sentence when a required value is empty
  std::string_view environment{};  // read when neither file nor flag gives a value
  std::string_view file_key{};     // its place in YAML where that is not params.<name>
  std::string_view second_name{};  // accepted too: what accelerate calls it
  std::vector<std::string>
      also_called{};    // what other tools call it: for suggestions only, never accepted
  bool secret = false;  // never written, never printed
  bool list = false;    // a YAML list is joined by commas

  bool optional() const { return member.index() >= 4; }
  bool boolean() const {
    return std::holds_alternative<MemberOf<bool>>(member) ||
           std::holds_alternative<MemberOf<std::optional<bool>>>(member);
  }
  bool map() const { return std::holds_alternative<MemberOf<std::optional<StringMap>>>(member); }
  // Whether --no-<name> exists: for what is on (or undecided) without a flag.
  bool has_negation() const { return boolean() && initial != Value(false); }
  bool available() const { return not_yet.empty() && never.empty(); }
  bool used_by(std::string_view trainer) const;
};

const std::vector<Field>& field_table();
std::span<const Field* const> fields_of(Task task);
const Field* find_field(std::string_view name,
                        Task task = Task::llm);             // null: no such parameter
std::vector<Task> tasks_with_field(std::string_view name);  // where it is a parameter

Value get_value(const TrainingParams& params, const Field& field);
void set_value(TrainingParams& params, const Field& field,
               const Value& value);  // of the member's type

// "batch_size" -> "--batch-size"
std::string flag_name(std::string_view name);
// "--Batch-Size=3" -> "Batch_Size"
std::string parameter_name(std::string_view flag);
std::string type_name(const Field& field);  // "a whole number", for messages
std::string value_text(const Field& field,
                       const Value& value);  // for people: null, true, 3e-05, text; *** for secrets

}  // namespace aitraining::config
