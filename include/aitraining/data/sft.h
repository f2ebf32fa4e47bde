#pragma once
// Files -> rows -> template -> tokens and trained-token flags, for supervised fine-tuning.
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "aitraining/data/batch.h"
#include "aitraining/text/assets.h"

namespace aitraining::data {

// One row of a file. CSV values and JSON strings keep their literal text. Numbers that stand directly in a JSON row
// become the text they are written as (42 -> "42", 1.50 -> "1.50"); deeper ones stay numbers.
struct Row {
  int64_t number = 0;  // 1-based row of the file (line number for jsonl)
  nlohmann::ordered_json values;  // object
};

struct SplitFile { std::filesystem::path path; std::string format; };  // format: csv, tsv, jsonl, json

// <data_path>/<split>.{csv,jsonl,json,tsv} (csv first, as the reference). When data_path is a file it is itself the
// split `train` and the one it is called after; other splits are looked for beside it. UserError E12 naming the absolute
// paths that were looked for, and the splits that are there.
SplitFile find_split(const std::filesystem::path& data_path, const std::string& split);
// UserError naming file and line (column too for JSON) for what cannot be read, and when there is no row at all.
std::vector<Row> read_rows(const SplitFile& file);

struct SftOptions {
  std::string text_column = "text";
  bool text_column_given = false;     // named by the user: then no other column is taken instead
  std::string chat_template_choice;   // "", "none", "tokenizer", "chatml", ...
  bool response_only = true;
  bool add_eos_token = true;
  int64_t max_length = 1024;          // tokens per row; longer rows keep their start
  std::string max_length_reason = "--block-size";  // the flag or property that set it, for messages
  int64_t max_samples = 0;            // 0: all; else evenly spaced rows
  int64_t embedding_rows = 0;         // 0: unknown; a note tells of ids at or above. Growing or refusing: the caller's
};

struct SplitReport {
  std::string file;
  int64_t rows_read = 0, rows_used = 0, rows_truncated = 0;
  std::vector<int64_t> rows_without_trained_tokens;  // skipped; row numbers
  int64_t longest_row = 0, longest_prompt = 0;  // in tokens, before truncation; prompt: up to the first trained token
  int64_t system_messages_moved = 0;
  int64_t max_id = -1;                // highest token id in the rows used
  bool chat = false;
  std::string column;
  std::vector<std::string> notes;     // lines for the log
};

struct PreparedSplit {
  TokenizedRows rows;
  SplitReport report;
};

// Column checks alone (no tokenizer, no model): used by the launching parent to fail before any rank starts.
// Returns the column that will be used and whether its rows are message lists.
struct ColumnChoice { std::string column; bool chat = false; };
ColumnChoice check_columns(const SplitFile& file, const std::vector<Row>& rows, const SftOptions& options,
                           const std::string& split_word);  // split_word: "training" or "validation"

// `assets.chat_template` is used as it is: choose_chat_template() has been applied where the user chose one. Message
// lists without a template are a UserError. A training split without any trained token is a UserError naming
// model_max_length and the longest prompt; another split then has no rows, and a note says so.
PreparedSplit prepare_sft(const SplitFile& file, const std::vector<Row>& rows, const text::TextAssets& assets,
                          const SftOptions& options, const std::string& split_word);

}  // namespace aitraining::data
