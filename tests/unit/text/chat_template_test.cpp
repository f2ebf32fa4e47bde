#include "aitraining/text/chat_template.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/expect_error.h"
#include "support/text_fixtures.h"

namespace aitraining::text {
namespace {

using namespace test;
using nlohmann::ordered_json;

const ordered_json kTurn = {{{"role", "user"}, {"content", "hi"}},
                            {{"role", "assistant"}, {"content", "yo"}}};

const ordered_json kUser = ordered_json::array({kTurn[0]}),
                   kAssistant = ordered_json::array({kTurn[1]});

std::string render(const std::string& source, const ordered_json& messages = kTurn,
                   bool prompt = false) {
  return template_of(source).render(messages, nullptr, prompt).text;
}

std::string refusal(const std::string& source, const ordered_json& messages = kTurn) {
  try {
    const std::string text = render(source, messages);
    ADD_FAILURE() << "rendered: " << text;
  } catch (const TemplateError& error) {
    return error.what();
  }
  return {};
}

std::vector<std::string> generated(const std::string& source,
                                   const ordered_json& messages = kTurn) {
  const auto rendered = template_of(source).render(messages, nullptr, false);
  std::vector<std::string> parts;
  for (const auto& span : rendered.generations) {
    parts.push_back(rendered.text.substr(span.begin, span.end - span.begin));
  }
  return parts;
}

TEST(ChatTemplate, RendersChatml) {
  EXPECT_EQ(render(kC0), "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyo<|im_end|>\n");
  EXPECT_EQ(render(kC0, kUser, true), "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render(kC0b, kUser), "<s><|im_start|>user\nhi<|im_end|>\n");
  EXPECT_FALSE(template_of(kC0).render(kTurn, nullptr, false).has_generation_tags);
}

TEST(ChatTemplate, RefusalsCarryTheTemplatesOwnMessage) {
  const auto system = ordered_json::parse(R"([{"role": "system", "content": "s"}])");
  EXPECT_EQ(refusal(kCG, system), "System role not supported");
  EXPECT_EQ(refusal(kCG, kAssistant),
            "Conversation roles must alternate user/assistant/user/assistant/...");
  EXPECT_EQ(render(kCG), "<|im_start|>user\nhi<|im_end|>\n<|im_start|>model\nyo<|im_end|>\n");
}

TEST(ChatTemplate, GenerationTagsGiveSpans) {
  const auto rendered = template_of(kC0g).render(kTurn, nullptr, false);
  EXPECT_TRUE(rendered.has_generation_tags);
  EXPECT_EQ(rendered.text, render(kC0));
  ASSERT_EQ(rendered.generations.size(), 1u);
  EXPECT_EQ(rendered.generations[0].begin, rendered.text.find("yo"));
  EXPECT_EQ(rendered.generations[0].end,
            rendered.text.find("yo") + std::string("yo<|im_end|>").size());
}

TEST(ChatTemplate, GenerationTagsObeyWhitespaceControl) {
  EXPECT_EQ(render("a \n {%- generation -%} \n b \n {%- endgeneration -%} \n c"), "abc");
  EXPECT_EQ(generated("a \n {%- generation -%} \n b \n {%- endgeneration -%} \n c"),
            (std::vector<std::string>{"b"}));
  // As block tags: the newline after them and the blanks before them go.
  EXPECT_EQ(render("a\n  {% generation %}\nb\n  {% endgeneration %}\nc"), "a\nb\nc");
  EXPECT_EQ(generated("a\n  {% generation %}\nb\n  {% endgeneration %}\nc"),
            (std::vector<std::string>{"b\n"}));
}

TEST(ChatTemplate, GenerationSpansAreBytesInOrder) {
  const ordered_json messages = {{{"role", "assistant"}, {"content", "é😀"}},
                                 {{"role", "assistant"}, {"content", "z"}}};
  EXPECT_EQ(
      generated(
          "ü{% for m in messages %}-{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
          messages),
      (std::vector<std::string>{"é😀", "z"}));
}

TEST(ChatTemplate, GenerationTagsOnlyWhereTheyAreTags) {
  const std::string source =
      "{# {% generation %} #}{{ '{% generation %}' }}{% raw %}{% generation %}{% endraw %}{% set "
      "generation = 'g' %}{{ generation }}";
  const auto rendered = template_of(source).render(kTurn, nullptr, false);
  EXPECT_EQ(rendered.text, "{% generation %}{% generation %}g");
  EXPECT_FALSE(rendered.has_generation_tags);
}

TEST(ChatTemplate, GenerationBlocksAreClosedWhereTheyBegan) {
  const auto compile = [](const std::string& source) {
    return [source] { ChatTemplate(source, {}, "here"); };
  };
  expect_user_error(compile("\n{% endgeneration %}"), {"line 2", "endgeneration"});
  expect_user_error(
      compile(
          "{% for m in messages %}\n{% generation %}{% break %}{% endgeneration %}{% endfor %}"),
      {"line 2", "break", "generation"});
  EXPECT_EQ(generated("{% generation %}{% for m in messages %}{{ m.role }}{% break %}{% endfor %}!"
                      "{% endgeneration %}"),
            (std::vector<std::string>{"user!"}));
}

TEST(ChatTemplate, EndlessWorkIsAnError) {
  const std::string loops =
      "{% for a in range(99999) %}{% for b in range(99999) %}{{ '' }}{% endfor %}{% endfor %}";
  EXPECT_NE(refusal("\n" + loops).find("line 2: the template makes more"), std::string::npos);
  EXPECT_NE(refusal("{{ 'x' * 100000000000 }}").find("makes more text"), std::string::npos);
}

TEST(ChatTemplate, TextMayHoldTheMarksOfGenerationTags) {
  const std::string odd =
      "a\xef\xb7\x90"
      "b\xef\xb7\x91"
      "c";  // U+FDD0 and U+FDD1
  const ordered_json messages = {{{"role", "assistant"}, {"content", odd}}};
  EXPECT_EQ(generated("{% generation %}{{ messages[0].content }}{% endgeneration %}.", messages),
            (std::vector<std::string>{odd}));
}

TEST(ChatTemplate, AbsentKeysAreUndefinedAndNullIsNone) {
  const ordered_json messages = {{{"role", "assistant"}, {"content", nullptr}}};
  const std::string look =
      "{{ messages[0].content is defined }} {{ messages[0].content is none }} "
      "{{ messages[0].name is defined }} {{ 'name' in messages[0] }}";
  EXPECT_EQ(render(look, messages), "True True False False");
  EXPECT_EQ(render("[{{ messages[0].content }}][{{ messages[0].name }}]", messages), "[][]");
  EXPECT_EQ(render("{{ tools is none }} {{ documents is none }} {{ custom is defined }}"),
            "True True False");
}

TEST(ChatTemplate, NullContentNeverBecomesAWord) {
  const ordered_json messages = {{{"role", "assistant"}, {"content", nullptr}}};
  EXPECT_EQ(render(kC0, messages), "<|im_start|>assistant\n<|im_end|>\n");
}

TEST(ChatTemplate, TokensTheModelLacksAreUndefined) {
  const ChatTemplate bare("{{ bos_token is defined }}[{{ bos_token }}]{{ eos_token }}",
                          {"", "</s>", "", ""}, "t");
  EXPECT_EQ(bare.render(kTurn, nullptr, false).text, "False[]</s>");
}

TEST(ChatTemplate, SyntaxErrorsNameOriginAndLine) {
  expect_user_error([] { ChatTemplate("a\nb\n{% if x %}\n{{ y", {}, "m/chat_template.jinja"); },
                    {"m/chat_template.jinja", "line 4"});
  expect_user_error([] { ChatTemplate("{% generation %}never closed", {}, "here"); },
                    {"here", "line 1"});
  expect_user_error([] { ChatTemplate("{% nonsense %}", {}, "here"); }, {"here", "nonsense"});
  expect_user_error([] { ChatTemplate("\xff", {}, "here"); }, {"here", "UTF-8"});
}

TEST(ChatTemplate, RuntimeErrorsNameTheLine) {
  EXPECT_NE(refusal("a\n{{ messages[0].nope + 'x' }}").find("line 2"), std::string::npos);
  EXPECT_NE(refusal("{{ messages | nofilter }}").find("nofilter"), std::string::npos);
  EXPECT_NE(refusal("{{ messages[0].content.frobnicate() }}").find("frobnicate"),
            std::string::npos);
}

TEST(ChatTemplate, EndlessRecursionIsAnError) {
  const std::string source = "{% macro again(n) %}{{ again(n) }}{% endmacro %}{{ again(1) }}";
  EXPECT_NE(refusal(source).find("recursion"), std::string::npos);
  std::thread([&] { EXPECT_FALSE(refusal(source).empty()); }).join();
  expect_user_error([] { ChatTemplate("{{ " + std::string(20'000, '(') + " }}", {}, "deep"); },
                    {"deep", "recursion"});
  expect_user_error([] { ChatTemplate("{{ " + std::string(20'000, '[') + " }}", {}, "deep"); },
                    {"deep"});
}

TEST(ChatTemplate, DeeplyNestedDataIsAnError) {
  ordered_json deep = "x";
  for (int i = 0; i < 2'000; ++i) deep = ordered_json::array({std::move(deep)});
  EXPECT_NE(refusal(kC0, {{{"role", "user"}, {"content", std::move(deep)}}}).find("nested"),
            std::string::npos);
}

TEST(ChatTemplate, BadUtf8InAMessageIsAnError) {
  EXPECT_NE(refusal(kC0, {{{"role", "user"}, {"content", "\xff"}}}).find("UTF-8"),
            std::string::npos);
}

TEST(ChatTemplate, ARefusalDoesNotOutliveItsRendering) {
  const auto chat = template_of(
      "{% if messages[0].role == 'x' %}{{ raise_exception('no x') }}{% endif %}{{ "
      "messages[0].content + 1 }}");
  EXPECT_THROW(chat.render({{{"role", "x"}}}, nullptr, false), TemplateError);
  try {
    chat.render(kTurn, nullptr, false);
    FAIL();
  } catch (const TemplateError& error) {
    EXPECT_EQ(std::string(error.what()).find("no x"), std::string::npos);
  }
}

}  // namespace
}  // namespace aitraining::text
