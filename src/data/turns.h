#pragma once
// Where the assistant's words stand in a rendered conversation.
#include <string>
#include <vector>

#include "aitraining/text/chat_template.h"
#include "messages.h"

namespace aitraining::data {

// One assistant turn, in byte offsets of the rendered text.
struct Turn {
  size_t begin = 0, end = 0;  // what is left of its content
  size_t tail = 0;            // the end marker is looked for from here on ...
  size_t limit = 0;           // ... and begins before here: the content of the next message
  bool cut = false;           // the template dropped a part: begin was found by comparing texts
};

struct LocatedTurns {
  std::vector<Turn> turns;  // in order; a turn that the template dropped whole is missing
  int64_t dropped = 0;      // assistant messages of which the template dropped all or a part
};

// `plain` is the rendering of `conversation` without a generation prompt.
LocatedTurns locate_turns(const text::ChatTemplate& chat_template, const Conversation& conversation,
                          const std::string& plain);

}  // namespace aitraining::data
