#include "builtin_templates.h"

namespace aitraining::text {
namespace {

constexpr std::string_view kChatml = R"({%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}
)";

constexpr std::string_view kZephyr = R"({%- for message in messages -%}
{{- '<|' + message['role'] + '|>\n' + message['content'] + eos_token + '\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\n' -}}{%- endif -%}
)";

constexpr std::string_view kLlama3 = R"({{- bos_token -}}
{%- for message in messages -%}
{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}{%- endif -%}
)";

constexpr std::string_view kAlpaca = R"({%- if messages[0]['role'] == 'system' -%}
{%- set preamble = messages[0]['content'] -%}
{%- set turns = messages[1:] -%}
{%- else -%}
{%- set preamble = 'Below is an instruction that describes a task. Write a response that appropriately completes the request.' -%}
{%- set turns = messages -%}
{%- endif -%}
{{- bos_token -}}{{- preamble + '\n\n' -}}
{%- for message in turns -%}
{%- if message['role'] == 'user' -%}{{- '### Instruction:\n' + message['content'] + '\n\n' -}}
{%- elif message['role'] == 'assistant' -%}{{- '### Response:\n' + message['content'] + eos_token + '\n\n' -}}
{%- else -%}{{- raise_exception('The alpaca template knows the roles system (first), user and assistant, not ' + message['role']) -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '### Response:\n' -}}{%- endif -%}
)";

constexpr std::string_view kVicuna = R"({%- if messages[0]['role'] == 'system' -%}
{%- set preamble = messages[0]['content'] -%}
{%- set turns = messages[1:] -%}
{%- else -%}
{%- set preamble = "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, detailed, and polite answers to the user's questions." -%}
{%- set turns = messages -%}
{%- endif -%}
{{- bos_token -}}{{- preamble + ' ' -}}
{%- for message in turns -%}
{%- if message['role'] == 'user' -%}{{- 'USER: ' + message['content'] + ' ' -}}
{%- elif message['role'] == 'assistant' -%}{{- 'ASSISTANT: ' + message['content'] + eos_token -}}
{%- else -%}{{- raise_exception('The vicuna template knows the roles system (first), user and assistant, not ' + message['role']) -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}
)";

constexpr std::string_view kLlama2 = R"({%- if messages[0]['role'] == 'system' -%}
{%- set preamble = '<<SYS>>\n' + messages[0]['content'] + '\n<</SYS>>\n\n' -%}
{%- set turns = messages[1:] -%}
{%- else -%}
{%- set preamble = '' -%}
{%- set turns = messages -%}
{%- endif -%}
{%- for message in turns -%}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}
{%- endif -%}
{%- if message['role'] == 'user' -%}
{{- bos_token -}}{{- '[INST] ' + (preamble if loop.first else '') + message['content'] + ' [/INST]' -}}
{%- elif message['role'] == 'assistant' -%}{{- ' ' + message['content'] + ' ' + eos_token -}}
{%- else -%}{{- raise_exception('Only user and assistant roles are supported after the first message') -}}
{%- endif -%}
{%- endfor -%}
)";

constexpr std::string_view kMistral = R"({{- bos_token -}}
{%- for message in messages -%}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}
{%- endif -%}
{%- if message['role'] == 'user' -%}{{- '[INST] ' + message['content'] + ' [/INST]' -}}
{%- elif message['role'] == 'assistant' -%}{{- ' ' + message['content'] + eos_token -}}
{%- else -%}{{- raise_exception('Only user and assistant roles are supported') -}}
{%- endif -%}
{%- endfor -%}
)";

constexpr std::string_view kGemma = R"({{- bos_token -}}
{%- if messages[0]['role'] == 'system' -%}{{- raise_exception('System role not supported') -}}{%- endif -%}
{%- for message in messages -%}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}
{%- endif -%}
{%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
{{- '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%}
)";

constexpr std::string_view kPhi3 = R"({%- for message in messages -%}
{%- if message['role'] not in ['system', 'user', 'assistant'] -%}
{{- raise_exception('The phi3 template knows the roles system, user and assistant, not ' + message['role']) -}}
{%- endif -%}
{{- '<|' + message['role'] + '|>\n' + message['content'] + '<|end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\n' -}}{%- endif -%}
)";

}  // namespace

const std::vector<BuiltinTemplate>& builtin_templates() {
  static const std::vector<BuiltinTemplate> all = {
      {"chatml", kChatml, {"<|im_start|>", "<|im_end|>"}},
      {"zephyr", kZephyr, {}, true},
      {"llama3", kLlama3, {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
      {"llama", kLlama2, {}, true},
      {"alpaca", kAlpaca, {}, true},
      {"vicuna", kVicuna, {}, true},
      {"mistral", kMistral, {}, true},
      {"gemma", kGemma, {"<start_of_turn>", "<end_of_turn>"}},
      {"phi3", kPhi3, {"<|system|>", "<|user|>", "<|assistant|>", "<|end|>"}},
  };
  return all;
}

}  // namespace aitraining::text
