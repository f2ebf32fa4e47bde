#pragma once
// Tokenised rows and the micro-batches made of them. Rows are laid end to end without padding: a micro-batch is one
// list of tokens plus segment lengths, and attention never crosses a segment.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace aitraining::data {

// All rows of a split. Token i of a row is trained when weight[i] != 0, which means: the model is asked to predict it
// from the tokens before it. The first token of a row is never trained.
class TokenizedRows {
 public:
  void add(std::span<const int32_t> ids, std::span<const uint8_t> trained, int64_t source_row);
  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  std::span<const int32_t> ids(int64_t row) const;
  std::span<const uint8_t> trained(int64_t row) const;
  int64_t length(int64_t row) const { return offsets_[row + 1] - offsets_[row]; }
  int64_t source_row(int64_t row) const { return source_rows_[row]; }  // 1-based number in the file
  int64_t trained_tokens(int64_t row) const { return trained_counts_[row]; }
  int64_t total_tokens() const { return offsets_.back(); }
  int64_t total_trained() const;

 private:
  std::vector<int64_t> offsets_{0};
  std::vector<int32_t> ids_;
  std::vector<uint8_t> trained_;
  std::vector<int64_t> source_rows_, trained_counts_;
};

struct MicroBatch {
  std::vector<int32_t> tokens;         // [T]
  std::vector<int32_t> positions;      // [T], from 0 in each segment
  std::vector<int64_t> segment_length; // [S], sums to T
  std::vector<int64_t> segment_sample; // [S], row number in the split: key of counter-based dropout masks
  std::vector<int32_t> label_row;      // [N]: index in [0, T) of the token from which a label is predicted, ascending
  std::vector<int32_t> label;          // [N]: the token to be predicted
  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_labels() const { return static_cast<int64_t>(label.size()); }
  bool empty() const { return tokens.empty(); }
};

// What a micro-batch is made of: one row per item, or one pack of rows per item.
using Item = std::vector<int64_t>;  // row numbers, in order

MicroBatch collate(const TokenizedRows& rows, std::span<const Item> items);

}  // namespace aitraining::data
