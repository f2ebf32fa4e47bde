#include "table/parts.h"

namespace aitraining::config::table {

using P = TrainingParams;

std::vector<Field> data_fields() {
  return {
      {.member = &P::add_eos_token,
       .name = "add_eos_token",
       .group = Group::data,
       .initial = true,
       .help = "End every plain text row with the end-of-sequence token"},
      {.member = &P::block_size,
       .name = "block_size",
       .group = Group::data,
       .initial = -1,
       .help = "Tokens per row at most; -1: min(model_max_length, 1024)",
       .range = {.min = 2, .or_else = -1},
       .also_called = {"max_length", "max_seq_length", "cutoff_len"}},
      {.member = &P::model_max_length,
       .name = "model_max_length",
       .group = Group::data,
       .initial = 2048,
       .help = "Context limit; 2048: taken from the model",
       .range = {.min = 2}},
      {.member = &P::padding,
       .name = "padding",
       .group = Group::data,
       .initial = "right",
       .help = "Padding side; no effect, since batches carry no padding",
       .choices = {"left", "right"},
       .null_means = "right"},
      {
          .member = &P::chat_template,
          .name = "chat_template",
          .group = Group::data,
          .help = "none, tokenizer, a built-in name (chatml, zephyr, ...) or a file; unset: the "
                  "tokenizer's own when rows "
                  "are message lists",
          .null_means = "none",
          .file_key = "data.chat_template",
      },
      {
          .member = &P::text_column,
          .name = "text_column",
          .group = Group::data,
          .tasks = kEveryTask,
          .initial = "text",
          .help = "Column with the text or the list of messages",
          .missing = "text_column must not be empty",
          .file_key = "data.column_mapping.text_column",
      },
      {.member = &P::apply_chat_template,
       .name = "apply_chat_template",
       .group = Group::data,
       .initial = true,
       .help = "Render message lists; --no-apply-chat-template equals --chat-template none"},
  };
}

}  // namespace aitraining::config::table
