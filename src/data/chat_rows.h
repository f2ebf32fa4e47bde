#pragma once
// A row as text, with what is known of its trained parts before it is tokenised.
#include <optional>
#include <string>
#include <vector>

#include "aitraining/data/sft.h"
#include "aitraining/text/assets.h"
#include "turns.h"

namespace aitraining::data {

struct RenderedRow {
  int64_t number = 0;
  std::string text;
  std::vector<text::CharSpan> generations;  // spans given by the template's own tags
  std::vector<Turn> turns;                  // else: found by locate_turns()
  int64_t dropped = 0;
  bool system_moved = false, renamed_keys = false;
};

// Applies the template. A refused system message is merged into the first user text; any other refusal is a UserError
// naming file, row, message, role and the template's own words. `locate`: find the assistant's turns.
RenderedRow render_chat_row(const SplitFile& file, const Row& row, const std::string& column,
                            const text::ChatTemplate& chat_template, bool locate);

// One flag per token: holds a character of an assistant turn's content or of its end. The end goes through the first
// special token after the content, or through `eos` where that follows in the same row of special tokens.
std::vector<uint8_t> trained_flags(const RenderedRow& row, const text::Encoding& tokens,
                                   const text::Tokenizer& tokenizer, std::optional<int32_t> eos);

}  // namespace aitraining::data
