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

// One row of a file. CSV values and JSON strings keep their literal text; numbers in JSON keep their written form when
// read as text (42 -> "42").
struct Row {
  int64_t number = 0;  // 1-based row of the file (line number for jsonl)
  nlohmann::ordered_json values;  // object
};

struct SplitFile { std::filesystem::path path; std::string format; };  // format: csv, tsv, jsonl, json

// <data_path>/<split>.{csv,jsonl,json,tsv} (csv first, as the reference), or data_path itself when it is a file.
// UserError E12 naming the absolute paths that were looked for, and the splits that are there.
SplitFile find_split(const std::filesystem::path& data_path, const std::string& split);
std::vector<Row> read_rows(const SplitFile& file);

struct SftOptions {
  std::string text_column = "text";
  bool text_column_given = false;     // named by the user: then no other column is taken instead
  std::string chat_template_choice;   // "", "none", "tokenizer", "chatml", ...
  bool response_only = true;
  bool add_eos_token = true;
  int64_t max_length = 1024;          // tokens per row; longer rows keep their start
  int64_t max_samples = 0;            // 0: all; else evenly spaced rows
  int64_t embedding_rows = 0;         // ids at or above are an error (PEFT) or grow the embedding (full)
};

struct SplitReport {
  std::string file;
  int64_t rows_read = 0, rows_used = 0, rows_truncated = 0;
  std::vector<int64_t> rows_without_trained_tokens;  // skipped; row numbers
  int64_t longest_row = 0, longest_prompt = 0, system_messages_moved = 0;
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

PreparedSplit prepare_sft(const SplitFile& file, const std::vector<Row>& rows, const text::TextAssets& assets,
                          const SftOptions& options, const std::string& split_word);

}  // namespace aitraining::data
