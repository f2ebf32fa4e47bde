#pragma once
#include "special_tokens.h"

namespace aitraining::text {

// Text assets of a model's files (tokenizer.json is among them). `origin`: the folder or file, for
// messages.
TextAssets build_assets(Files files, const std::string& origin);

}  // namespace aitraining::text
