#include "aitraining/data/sft.h"

#include <algorithm>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "chat_rows.h"
#include "messages.h"
#include "rows.h"

namespace aitraining::data {

namespace {

constexpr size_t kChunk = 1024;  // rows that are rendered, then tokenised together

// The start token of plain text: the tokenizer's own, or the one that its post-processor puts in front.
std::optional<int32_t> start_token(const text::TextAssets& assets) {
  if (assets.bos) return assets.bos->id;
  const auto with = assets.tokenizer.encode("a", true).ids;
  const auto without = assets.tokenizer.encode("a", false).ids;
  const bool added = with.size() > without.size() && with.front() != without.front();
  return added ? std::optional(with.front()) : std::nullopt;
}

struct Tokens {
  std::vector<int32_t> ids;
  std::vector<uint8_t> trained;
};

class Preparer {
 public:
  Preparer(const SplitFile& file, const text::TextAssets& assets, const SftOptions& options, ColumnChoice choice,
           int64_t rows_read)
      : file_(file), assets_(assets), options_(options), choice_(std::move(choice)) {
    result_.report.rows_read = rows_read;
    result_.report.file = file.path.string();
    result_.report.chat = choice_.chat;
    result_.report.column = choice_.column;
    if (!choice_.chat) bos_ = start_token(assets);
    if (assets.eos) eos_ = assets.eos->id;
    if (choice_.chat && !assets.chat_template) refuse_without_template();
  }

  void add(std::span<const Row* const> rows) {
    std::vector<RenderedRow> rendered;
    std::vector<std::string> texts;
    for (const Row* row : rows) {
      rendered.push_back(render(*row));
      texts.push_back(rendered.back().text);
    }
    const auto encodings = assets_.tokenizer.encode_batch(texts, false);
    for (size_t i = 0; i < rendered.size(); ++i) finish_row(rendered[i], encodings[i]);
  }

  PreparedSplit finish(const std::string& split_word) {
    result_.report.rows_used = result_.rows.size();
    if (result_.rows.size() == 0 && split_word == "training") refuse_untrained();
    write_notes();
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse_without_template() const {
    const std::string& choice = options_.chat_template_choice;
    const std::string why = !assets_.chat_template_error.empty() ? assets_.chat_template_error
                            : choice.empty()                     ? "the model's tokenizer has none"
                                                                 : "--chat-template is `" + choice + "`";
    throw UserError(
        "{}: column `{}` holds message lists, but there is no chat template: {}. Name one, for example --chat-template "
        "chatml, zephyr, llama3 or a template file",
        file_.path.string(), choice_.column, why);
  }

  RenderedRow render(const Row& row) {
    if (choice_.chat) {
      RenderedRow result = render_chat_row(file_, row, choice_.column, *assets_.chat_template, options_.response_only);
      result_.report.system_messages_moved += result.system_moved;
      dropped_ += result.dropped;
      if (result.dropped > 0 && first_dropped_ == 0) first_dropped_ = row.number;
      renamed_ += result.renamed_keys;
      return result;
    }
    RenderedRow result;
    result.number = row.number;
    result.text = cell_text(row.values.at(choice_.column));
    return result;
  }

  void add_start_and_end(std::vector<int32_t>& ids) const {
    if (bos_ && (ids.empty() || ids.front() != *bos_)) ids.insert(ids.begin(), *bos_);
    // A text that is nothing but the start token has no end yet, even where start and end are one token.
    const bool ended = ids.size() > (bos_ ? 1u : 0u) && ids.back() == eos_;
    if (options_.add_eos_token && eos_ && !ended) ids.push_back(*eos_);
  }

  Tokens tokens_of(const RenderedRow& row, const text::Encoding& encoding) const {
    Tokens tokens{encoding.ids, {}};
    if (choice_.chat && options_.response_only) {
      tokens.trained = trained_flags(row, encoding, assets_.tokenizer, eos_);
    } else {
      if (!choice_.chat) add_start_and_end(tokens.ids);
      tokens.trained.assign(tokens.ids.size(), 1);
    }
    if (!tokens.trained.empty()) tokens.trained.front() = 0;
    return tokens;
  }

  void finish_row(const RenderedRow& row, const text::Encoding& encoding) {
    SplitReport& report = result_.report;
    Tokens tokens = tokens_of(row, encoding);
    const auto length = static_cast<int64_t>(tokens.ids.size());
    const auto prompt = std::find(tokens.trained.begin(), tokens.trained.end(), 1) - tokens.trained.begin();
    report.longest_row = std::max(report.longest_row, length);
    report.longest_prompt = std::max<int64_t>(report.longest_prompt, prompt);
    if (length > options_.max_length) {
      ++report.rows_truncated;
      tokens.ids.resize(static_cast<size_t>(options_.max_length));
      tokens.trained.resize(static_cast<size_t>(options_.max_length));
    }
    if (prompt >= static_cast<int64_t>(tokens.ids.size())) {
      report.rows_without_trained_tokens.push_back(row.number);
      return;
    }
    report.max_id = std::max<int64_t>(report.max_id, *std::max_element(tokens.ids.begin(), tokens.ids.end()));
    result_.rows.add(tokens.ids, tokens.trained, row.number);
  }

  [[noreturn]] void refuse_untrained() const {
    const SplitReport& report = result_.report;
    if (report.rows_truncated == 0)
      throw UserError("{}: no row has a token to be trained: {}", report.file,
                      report.chat ? "no conversation has an assistant turn that the chat template keeps"
                                  : "all texts are empty or one token long");
    throw UserError(
        "{}: no trained token is left in any row: rows are cut at {} tokens ({}) and the longest prompt has {}, so the "
        "answers are cut off. {}shorten the prompts (the longest row has {} tokens)",
        report.file, options_.max_length, options_.max_length_reason, report.longest_prompt,
        options_.max_length_reason.starts_with("--") ? "Raise " + options_.max_length_reason + " or " : "", report.longest_row);
  }

  void note(std::string line) { result_.report.notes.push_back(std::move(line)); }

  void write_notes() {
    const SplitReport& report = result_.report;
    const auto& choice = options_.chat_template_choice;
    if (choice_.column != options_.text_column)
      note(fmt::format("{}: column `{}` is taken without being named (there is no `{}`)", report.file, choice_.column,
                       options_.text_column));
    if (!report.chat && !choice.empty() && choice != "none" && choice != "null")
      note(fmt::format("Could not parse text column as messages, skipping chat template ({} rows of plain text in "
                       "column `{}`)", report.rows_read, choice_.column));
    if (!report.chat && options_.add_eos_token && !assets_.eos)
      note("the tokenizer has no eos token: plain text rows end without one");
    if (renamed_ > 0) note(fmt::format("{} rows are from/value lists, read as role/content", renamed_));
    if (report.system_messages_moved > 0)
      note(fmt::format("the chat template refuses system messages: {} were put before the first user text",
                       report.system_messages_moved));
    if (dropped_ > 0)
      note(fmt::format("the chat template drops text of {} assistant turns (first in row {}); dropped text is not "
                       "trained", dropped_, first_dropped_));
    if (report.rows_truncated > 0)
      note(fmt::format("{} rows are longer than model_max_length {} and keep their start", report.rows_truncated,
                       options_.max_length));
    if (options_.embedding_rows > 0 && report.max_id >= options_.embedding_rows)
      note(fmt::format("{}: token ids go up to {}, but the embedding has {} rows", report.file, report.max_id,
                       options_.embedding_rows));
    if (!report.rows_without_trained_tokens.empty()) note(skipped_note());
    if (result_.rows.size() == 0) note(fmt::format("{}: no tokens to evaluate", report.file));
  }

  std::string skipped_note() const {
    constexpr size_t kNamed = 20;
    const auto& skipped = result_.report.rows_without_trained_tokens;
    std::vector<std::string> numbers;
    for (size_t i = 0; i < std::min(skipped.size(), kNamed); ++i) numbers.push_back(std::to_string(skipped[i]));
    const auto more = skipped.size() - numbers.size();
    return fmt::format("{} row{} without a trained token {} skipped: {} {}{}", skipped.size(),
                       skipped.size() > 1 ? "s" : "", skipped.size() > 1 ? "are" : "is",
                       result_.report.file.ends_with(".jsonl") ? "line" : "row", join(numbers, ", "),
                       more > 0 ? fmt::format(" and {} more", more) : "");
  }

  const SplitFile& file_;
  const text::TextAssets& assets_;
  const SftOptions& options_;
  ColumnChoice choice_;
  std::optional<int32_t> bos_, eos_;
  PreparedSplit result_;
  int64_t dropped_ = 0, first_dropped_ = 0, renamed_ = 0;
};

// Evenly spaced: rows 0, s, 2s, ... with s = max(1, n / limit).
std::vector<const Row*> sample_rows(const std::vector<Row>& rows, int64_t limit) {
  const auto size = static_cast<int64_t>(rows.size());
  const int64_t count = limit > 0 ? std::min(limit, size) : size;
  const int64_t step = limit > 0 ? std::max<int64_t>(1, size / limit) : 1;
  std::vector<const Row*> sample;
  for (int64_t i = 0; i < count; ++i) sample.push_back(&rows[static_cast<size_t>(i * step)]);
  return sample;
}

}  // namespace

PreparedSplit prepare_sft(const SplitFile& file, const std::vector<Row>& rows, const text::TextAssets& assets,
                          const SftOptions& options, const std::string& split_word) {
  AIT_CHECK(options.max_length > 0, "max_length {}", options.max_length);
  Preparer preparer(file, assets, options, check_columns(file, rows, options, split_word),
                    static_cast<int64_t>(rows.size()));
  const auto sample = sample_rows(rows, options.max_samples);
  for (size_t begin = 0; begin < sample.size(); begin += kChunk)
    preparer.add(std::span(sample).subspan(begin, std::min(kChunk, sample.size() - begin)));
  return preparer.finish(split_word);
}

}  // namespace aitraining::data
