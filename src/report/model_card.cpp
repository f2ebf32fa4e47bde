#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "aitraining/report/records.h"

namespace aitraining::report {
namespace {

// A YAML scalar. JSON's quoting is valid YAML and is used as soon as a character could mean
// something.
std::string yaml_text(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.';
  };
  const bool safe = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) &&
                    std::all_of(text.begin(), text.end(), plain) && text != "null" &&
                    text != "true" && text != "false";
  return safe ? text : nlohmann::json(text).dump();
}

std::string table_cell(const std::string& text) {
  std::string cell;
  for (char c : text) {
    if (c == '|') cell += '\\';
    cell += c == '\n' ? ' ' : c;
  }
  return cell;
}

std::string front_matter(const ModelCard& card) {
  std::string text = "---\ntags:\n- aitraining\n- text-generation-inference\n- text-generation\n";
  if (card.peft) text += "- peft\n";
  text += "library_name: transformers\n";
  if (!card.base_is_local) text += "base_model: " + yaml_text(card.base_model) + "\n";
  text += "widget:\n- messages:\n  - role: user\n    content: What can you do?\nlicense: other\n";
  if (!card.dataset_is_local) text += "datasets:\n- " + yaml_text(card.dataset) + "\n";
  return text + "---\n\n";
}

std::string parameter_table(const ModelCard& card) {
  std::string text = "| Parameter | Value |\n|---|---|\n";
  for (const auto& [name, value] : card.table)
    text += fmt::format("| {} | {} |\n", table_cell(name), table_cell(value));
  return text + "\n";
}

std::string results(const ModelCard& card) {
  if (!card.train_loss && !card.eval_loss) return "";
  std::string text = "## Results\n\n| Metric | Value |\n|---|---|\n";
  if (card.train_loss) text += fmt::format("| Training loss | {:.4f} |\n", *card.train_loss);
  if (card.eval_loss) text += fmt::format("| Validation loss | {:.4f} |\n", *card.eval_loss);
  return text + "\n";
}

// Python, because that is what readers of a model card load models with; nothing of it is needed
// for training.
constexpr const char* kLoadModel =
    R"(The model, with Hugging Face transformers (`.` is this folder):

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = AutoModelForCausalLM.from_pretrained(".")
messages = [{"role": "user", "content": "hi"}]
inputs = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
output = model.generate(**inputs, max_new_tokens=128)
print(tokenizer.decode(output[0][inputs["input_ids"].shape[1]:], skip_special_tokens=True))
```

)";

std::string load_adapter(const ModelCard& card, const std::string& folder) {
  return fmt::format(R"(The LoRA adapter alone, on top of its base model:

```python
from peft import PeftModel
from transformers import AutoModelForCausalLM

base = AutoModelForCausalLM.from_pretrained({})
model = PeftModel.from_pretrained(base, "{}")
```

)",
                     nlohmann::json(card.base_model).dump(), folder);
}

std::string usage(const ModelCard& card) {
  std::string text = "## How to load it\n\n";
  if (!card.peft) return text + kLoadModel;
  if (card.merged) {
    return text +
           "The adapter is already merged into the model of this folder; the adapter itself is "
           "kept in `adapter/`.\n\n" +
           kLoadModel + load_adapter(card, "adapter");
  }
  return text + "This folder holds a LoRA adapter, not a whole model.\n\n" +
         load_adapter(card, ".") +
         fmt::format(
             "To merge it into its base model:\n\n```bash\naitraining tools merge-llm-adapter "
             "--base-model-path {} "
             "--adapter-path . --output-folder merged\n```\n\n",
             nlohmann::json(card.base_model).dump());
}

}  // namespace

std::string render_model_card(const ModelCard& card) {
  std::string text = front_matter(card) + "# " + card.title + "\n\n";
  text += "Trained with aitraining" + (card.version.empty() ? "" : " " + card.version) + ".\n\n";
  text += parameter_table(card) + results(card) + usage(card);
  if (!card.license_note.empty()) text += "## License\n\n" + card.license_note + "\n";
  return text;
}

}  // namespace aitraining::report
