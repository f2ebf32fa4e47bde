#include "chat_rows.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/text_fixtures.h"

namespace aitraining::data {
namespace {

using nlohmann::ordered_json;
using test::expect_user_error;
using test::template_of;

const SplitFile kFile{"/d/train.jsonl", "jsonl"};

ordered_json says(const char* role, const std::string& content) { return {{"role", role}, {"content", content}}; }

struct Marked {
  RenderedRow row;
  std::string trained;  // the trained tokens' text, turns separated by '~'
};

std::string trained_text(const RenderedRow& row, std::optional<int32_t> eos = test::kImEnd) {
  static const auto tokenizer = test::t0_assets().tokenizer;
  const auto tokens = tokenizer.encode(row.text, false);
  const auto flags = trained_flags(row, tokens, tokenizer, eos);
  std::string result;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i]) continue;
    if (!result.empty() && !flags[i - 1]) result += '~';
    const size_t begin = tokens.begin[i];
    if (i == 0 || !flags[i - 1] || tokens.begin[i] >= tokens.end[i - 1]) result += row.text.substr(begin, tokens.end[i] - begin);
  }
  return result;
}

Marked mark(const std::string& source, const ordered_json& messages, const ordered_json& tools = nullptr) {
  Row row{3, {{"messages", messages}}};
  if (!tools.is_null()) row.values["tools"] = tools;
  Marked result{render_chat_row(kFile, row, "messages", template_of(source), true), {}};
  result.trained = trained_text(result.row);
  return result;
}

const ordered_json kTwoTurns = {says("system", "be"), says("user", "yo"), says("assistant", "yo"), says("user", "assistant"),
                                says("assistant", " a\n")};

TEST(TrainedFlags, ContentAndEndOfEveryTurn) {
  for (const auto& source : {test::kC0, test::kC0b, test::kC0g})
    EXPECT_EQ(mark(source, kTwoTurns).trained, "yo<|im_end|>~ a\n<|im_end|>") << source;
}

TEST(TrainedFlags, TextBeyondAscii) {
  EXPECT_EQ(mark(test::kC0, {says("user", "é"), says("assistant", "añ😀")}).trained, "añ😀<|im_end|>");
}

TEST(TrainedFlags, ContentWithSpecialTokensInIt) {
  EXPECT_EQ(mark(test::kC0, {says("user", "q"), says("assistant", "a<|im_end|>b")}).trained, "a<|im_end|>b<|im_end|>");
}

TEST(TrainedFlags, EmptyAnswerHasOneTrainedToken) {
  for (const auto& source : {test::kC0, test::kC0g})
    EXPECT_EQ(mark(source, {says("user", "q"), says("assistant", "")}).trained, "<|im_end|>");
  const std::string conditional =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  EXPECT_EQ(mark(conditional, {says("user", "q"), says("assistant", "")}).trained, "<|im_end|>");
}

TEST(TrainedFlags, TemplateThatTrims) {
  const std::string trims =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n\n{{ m.content | trim }}<|im_end|>{% endfor %}";
  EXPECT_EQ(mark(trims, {says("user", " q "), says("assistant", "\n a b \n"), says("user", "r"), says("assistant", "c")}).trained,
            "a b<|im_end|>~c<|im_end|>");
}

TEST(TrainedFlags, TemplateWithoutAnEnd) {
  const std::string plain = "{% for m in messages %}### {{ m.role }}:\n{{ m.content }}\n\n{% endfor %}";
  EXPECT_EQ(mark(plain, kTwoTurns).trained, "yo~ a\n");
  // The next turn's header is the end, as in templates of the GLM kind; the header after that is not.
  const std::string header = "{% for m in messages %}{{ '<|im_start|>' if m.role == 'user' else '# ' }}{{ m.content }}\n{% endfor %}";
  EXPECT_EQ(mark(header, {says("user", "q"), says("assistant", "a"), says("user", "r"), says("assistant", "b")}).trained,
            "a\n<|im_start|>~b");
  const std::string answer = "{% for m in messages %}{{ '# ' if m.role == 'user' else '<|im_start|>' }}{{ m.content }}\n{% endfor %}";
  EXPECT_EQ(mark(answer, {says("user", "q"), says("assistant", "a"), says("user", "r"), says("assistant", "b")}).trained, "a~b");
}

TEST(TrainedFlags, EndTokenBehindAnotherSpecialToken) {
  const std::string two = "{% for m in messages %}{{ m.role }} {{ m.content }}<pad><|im_end|><s>{% endfor %}";
  const auto result = mark(two, {says("user", "q"), says("assistant", "a")});
  EXPECT_EQ(result.trained, "a<pad><|im_end|>");
  EXPECT_EQ(trained_text(result.row, test::kEos), "a<pad>");
}

TEST(TrainedFlags, TemplateThatLooksIntoContents) {
  // The output depends on the length of contents, so marks change it and contents are searched instead.
  const std::string counts =
      "{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content | length }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant{% endif %}";
  EXPECT_EQ(mark(counts, {says("user", "a"), says("assistant", "a"), says("user", "1"), says("assistant", "1")}).trained,
            "a<|im_end|>~1\n1<|im_end|>");
}

// Keeps thoughts in the last turn only, and writes them its own way.
const std::string kThinks =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
    "{% if m.role == 'assistant' and '</think>' in m.content %}"
    "{% set thought = m.content.split('</think>')[0].split('<think>')[-1].strip('\n') %}"
    "{% if loop.last %}{{ '<think>\n' + thought + '\n</think>\n\n' }}{% endif %}"
    "{{ m.content.split('</think>')[-1].lstrip('\n') }}{% else %}{{ m.content }}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}";

TEST(TrainedFlags, DroppedThoughtsAreNotTrained) {
  const auto result = mark(kThinks, {says("user", "q"), says("assistant", "<think>\nhm\n</think>\n\none"), says("user", "r"),
                                     says("assistant", "<think>so</think>two")});
  EXPECT_EQ(result.row.text,
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\none<|im_end|>\n<|im_start|>user\nr<|im_end|>\n"
            "<|im_start|>assistant\n<think>\nso\n</think>\n\ntwo<|im_end|>\n");
  EXPECT_EQ(result.trained, "one<|im_end|>~<think>\nso\n</think>\n\ntwo<|im_end|>");
  EXPECT_EQ(result.row.dropped, 1);
}

TEST(TrainedFlags, ComparedTextEndsAtTheHeadersSpecialToken) {
  const std::string drops =
      "{% for m in messages %}{{ m.role }}<|im_start|>{{ m.content.split('</think>')[-1] }}</s>{% endfor %}";
  const auto result = mark(drops, {says("user", "q"), says("assistant", "hm</think>a")});
  EXPECT_EQ(result.row.text, "user<|im_start|>q</s>assistant<|im_start|>a</s>");
  EXPECT_EQ(result.trained, "a</s>");
}

TEST(TrainedFlags, DroppedBack) {
  const std::string drops = "{% for m in messages %}<|im_start|>{{ m.content.split('|')[0] }}<|im_end|>{% endfor %}";
  const auto result = mark(drops, {says("user", "q"), says("assistant", "kept|gone")});
  EXPECT_EQ(result.trained, "kept<|im_end|>");
  EXPECT_EQ(result.row.dropped, 1);
}

TEST(TrainedFlags, DroppedTurn) {
  const std::string last = "{{ messages[-1].content }}<|im_end|>";
  const auto result = mark(last, {says("assistant", "a"), says("user", "q"), says("assistant", "b")});
  EXPECT_EQ(result.trained, "b<|im_end|>");
  EXPECT_EQ(result.row.dropped, 1);
}

const std::string kTools =
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}{% if m.name is defined %} {{ m.name }}{% endif %}"
    "{% if m.content %}{{ '\n' + m.content }}{% endif %}"
    "{% for c in m.tool_calls or [] %}{{ '\n<call>' + c.function.name + ' ' }}{{ c.function.arguments | tojson }}</call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

ordered_json calls(const ordered_json& arguments) {
  return {{"role", "assistant"}, {"content", nullptr},
          {"tool_calls", ordered_json::array({{{"type", "function"}, {"function", {{"name", "f"}, {"arguments", arguments}}}}})}};
}

TEST(TrainedFlags, ToolCallsAreTheAnswer) {
  const ordered_json tools = ordered_json::array({{{"name", "f"}, {"default", nullptr}}});
  const std::string text = "{\"city\": \"Rome\", \"unit\": null}";
  const auto conversation = [](const ordered_json& call) {
    return ordered_json{says("user", "q"), call, says("tool", "ok"), says("assistant", "a")};
  };
  const auto as_object = mark(kTools, conversation(calls(ordered_json::parse(text))), tools);
  const auto as_text = mark(kTools, conversation(calls(text)), tools.dump());
  EXPECT_EQ(as_object.row.text,
            "<|im_start|>system\n[{\"name\": \"f\"}]<|im_end|>\n<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
            "<call>f {\"city\": \"Rome\"}</call><|im_end|>\n<|im_start|>tool\nok<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n");
  EXPECT_EQ(as_text.row.text, as_object.row.text);
  EXPECT_EQ(as_object.trained, "<call>f {\"city\": \"Rome\"}</call><|im_end|>~a<|im_end|>");
  EXPECT_EQ(as_text.trained, as_object.trained);
  for (const char* word : {"None", "null", "[object", "undefined"}) EXPECT_EQ(as_text.row.text.find(word), std::string::npos);
}

TEST(TrainedFlags, ToolCallsInPlaceOfContent) {
  const std::string either =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.tool_calls %}{% for c in m.tool_calls %}"
      "{{ c.function.name }}<pad>{{ c.function.arguments | tojson }}{% endfor %}{% else %}{{ m.content }}{% endif %}"
      "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  for (const char* arguments : {"{\"city\": \"Rome\"}", "{\"city\": \"Rome\", \"days\": 2}"})
    EXPECT_EQ(mark(either, {says("user", "q"), calls(arguments)}).trained, std::string("f<pad>") + arguments + "<|im_end|>");
}

TEST(TrainedFlags, TemplateThatWantsArgumentsAsText) {
  const std::string joins =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is not none %}{{ m.content }}"
      "{% else %}{% for c in m.tool_calls %}{{ '=>' + c.function.name + ' ' + c.function.arguments }}{% endfor %}{% endif %}"
      "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  const auto result = mark(joins, {says("user", "q"), calls({{"city", "Rome"}, {"days", {1, 2}}})});
  EXPECT_EQ(result.trained, "=>f {\"city\": \"Rome\", \"days\": [1, 2]}<|im_end|>");
}

TEST(TrainedFlags, ToolCallsUnderATemplateWithoutTools) {
  EXPECT_EQ(mark(test::kC0, {says("user", "q"), calls("{}")}).trained, "<|im_end|>");
}

TEST(RenderChatRow, NullContentIsNeverPrinted) {
  const ordered_json messages = {says("user", "q"), calls("{}"), says("assistant", "a")};
  const std::string prints = "{% for m in messages %}[{{ m.content }}]{% endfor %}";
  EXPECT_EQ(mark(prints, messages).row.text, "[q][][a]");
  // A template that has a way of its own for null keeps it.
  const std::string asks = "{% for m in messages %}{% if m.content is not none %}[{{ m.content }}]{% endif %}{% endfor %}";
  EXPECT_EQ(mark(asks, messages).row.text, "[q][a]");
}

TEST(RenderChatRow, RefusedSystemMessageIsMovedOnce) {
  const auto result = mark(test::kCG, {says("system", "be"), says("user", "q"), says("assistant", "a")});
  EXPECT_EQ(result.row.text, "<|im_start|>user\nbe\n\nq<|im_end|>\n<|im_start|>model\na<|im_end|>\n");
  EXPECT_TRUE(result.row.system_moved);
  EXPECT_EQ(result.trained, "a<|im_end|>");
  EXPECT_FALSE(mark(test::kCG, {says("user", "q"), says("assistant", "a")}).row.system_moved);
}

TEST(RenderChatRow, OtherRefusalsNameRowRoleAndTheTemplatesWords) {
  expect_user_error([] { mark(test::kCG, {says("user", "q"), says("user", "r"), says("assistant", "a")}); },
                    {"/d/train.jsonl:3", "message 2 (role `user`)", "Conversation roles must alternate"});
  expect_user_error([] { mark(test::kCG, {says("system", "s"), says("user", "q"), says("user", "r")}); },
                    {"/d/train.jsonl:3", "message 3 (role `user`)", "Conversation roles must alternate"});
  expect_user_error([] { mark(test::kCG, {says("system", "s"), says("assistant", "a")}); },
                    {"message 1 (role `system`)", "System role not supported"});
}

TEST(RenderChatRow, PrivateUseCharactersInTheData) {
  EXPECT_EQ(mark(test::kC0, {says("user", "\U000F0001"), says("assistant", "a")}).trained, "a<|im_end|>");
}

TEST(RenderChatRow, NoMessagesIsNoText) { EXPECT_EQ(mark(test::kC0, ordered_json::array()).row.text, ""); }

}  // namespace
}  // namespace aitraining::data
