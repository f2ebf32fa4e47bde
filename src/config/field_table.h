#pragma once
// The one declaration of every parameter. Command line, YAML, JSON, checks, help,
// docs/parameters.md and the golden list of flags are all made from this table.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "aitraining/config/training_params.h"

namespace aitraining::config {

template <class T>
using MemberOf = T TrainingParams::*;
using Member = std::variant<MemberOf<bool>, MemberOf<int64_t>, MemberOf<double>,
                            MemberOf<std::string>, MemberOf<std::optional<bool>>,
                            MemberOf<std::optional<int64_t>>, MemberOf<std::optional<std::string>>>;
// monostate: null
using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;

enum class Group { basic, data, training, hyperparameters, sft, peft, launcher, hub };
inline constexpr Group kGroups[] = {Group::basic,           Group::data, Group::training,
                                    Group::hyperparameters, Group::sft,  Group::peft,
                                    Group::launcher,        Group::hub};
std::string_view group_title(Group group);

struct Range {
  std::optional<double> min{}, max{};
  bool below_max = false;           // max itself is not allowed
  std::optional<double> or_else{};  // one value outside that has a meaning of its own
};

struct Field {
  Member member;
  std::string_view name;
  Group group;
  Value initial{};
  std::string_view help;
  std::string_view trainers = "all";
  Range range{};
  std::vector<std::string> choices{};  // empty: any text
  std::vector<std::string> later{};    // values of the reference that this build cannot do yet
  std::string_view later_advice{};     // what to do instead
  std::vector<std::pair<std::string, std::string>> synonyms{};  // written -> taken as; "" is null
  std::string_view null_means{};  // what null stands for where it is not "unset"
  std::string_view
      wrong_choice{};  // the sentence for a value that is none of the choices; {} is the value
  std::string_view missing{};      // the sentence when a required value is empty
  std::string_view environment{};  // read when neither file nor flag gives a value
  std::vector<std::string>
      also_called{};    // what other tools call it: for suggestions only, never accepted
  bool secret = false;  // never written, never printed
  bool list = false;    // a YAML list is joined by commas

  bool optional() const { return member.index() >= 4; }
  bool boolean() const {
    return std::holds_alternative<MemberOf<bool>>(member) ||
           std::holds_alternative<MemberOf<std::optional<bool>>>(member);
  }
  // Whether --no-<name> exists: for what is on (or undecided) without a flag.
  bool has_negation() const { return boolean() && initial != Value(false); }
};

const std::vector<Field>& field_table();
const Field* find_field(std::string_view name);  // null: no such parameter

Value get_value(const TrainingParams& params, const Field& field);
void set_value(TrainingParams& params, const Field& field,
               const Value& value);  // of the member's type
TrainingParams default_params();

// "batch_size" -> "--batch-size"
std::string flag_name(std::string_view name);
// "--Batch-Size=3" -> "Batch_Size"
std::string parameter_name(std::string_view flag);
std::string type_name(const Field& field);  // "a whole number", for messages
std::string value_text(const Field& field,
                       const Value& value);  // for people: null, true, 3e-05, text; *** for secrets

}  // namespace aitraining::config
