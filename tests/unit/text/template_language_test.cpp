// What chat templates use of jinja2 and Python. The expected texts are what jinja2 3.1 with Hugging
// Face's settings gives.
#include <gtest/gtest.h>

#include <regex>

#include "support/text_fixtures.h"

namespace aitraining::text {
namespace {

using nlohmann::ordered_json;

struct Case {
  const char* source;
  const char* expected;
};

const ordered_json kMessages = ordered_json::parse(R"([
  {"role": "system", "content": " Be nice.\n"},
  {"role": "user", "content": "Hi \"you\" é"},
  {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYo", "tool_calls": [{"function": {"name": "f", "arguments":
    {"city": "Paris, \"FR\"", "n": 3, "x": 1.0, "big": 1e22, "small": 1e-7, "yes": true, "no": null,
     "list": [1, [], {}], "items": 5}}}]}])");
const ordered_json kTools =
    ordered_json::parse(R"([{"type": "function", "z": 1, "a": {"items": ["ü"]}}])");

class TemplateLanguage : public testing::TestWithParam<Case> {};

TEST_P(TemplateLanguage, GivesWhatJinja2Gives) {
  const auto chat = test::template_of(GetParam().source);
  EXPECT_EQ(chat.render(kMessages, kTools, true).text, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Whitespace, TemplateLanguage,
    testing::Values(Case{"{% if true %}\n  a\n{% endif %}\nb\n", "  a\nb"},
                    Case{"x\n    {% if true %}\ny\n    {% endif %}\nz", "x\ny\nz"},
                    Case{"a  {{- ' b ' -}}  c", "a b c"},
                    Case{"{%- for m in messages -%}\n  {{- m.role -}}\n{%- endfor -%}\n",
                         "systemuserassistant"},
                    Case{"a\r\nb\rc", "a\nb\nc"},
                    Case{"  {%+ if true %}x{% endif +%}\ny", "  x\ny"},
                    Case{"{#- note -#}  z", "z"}));

INSTANTIATE_TEST_SUITE_P(
    Json, TemplateLanguage,
    testing::Values(
        Case{
            "{{ messages[2].tool_calls[0].function.arguments | tojson }}",
            R"({"city": "Paris, \"FR\"", "n": 3, "x": 1.0, "big": 1e+22, "small": 1e-07, "yes": true, "no": null, )"
            R"("list": [1, [], {}], "items": 5})"},
        Case{"{{ tools | tojson }}", R"([{"type": "function", "z": 1, "a": {"items": ["ü"]}}])"},
        Case{"{{ tools | tojson(indent=2) }}",
             "[\n  {\n    \"type\": \"function\",\n    \"z\": 1,\n    \"a\": {\n      \"items\": "
             "[\n        \"ü\"\n      ]\n    }\n  }\n]"},
        Case{"{{ tools | tojson(sort_keys=true, ensure_ascii=true) }}",
             R"([{"a": {"items": ["\u00fc"]}, "type": "function", "z": 1}])"},
        Case{"{{ tools | tojson(separators=(',', ':')) }}",
             R"([{"type":"function","z":1,"a":{"items":["ü"]}}])"},
        Case{"{{ '<b>&\\t' | tojson }}", R"("<b>&\t")"}));

INSTANTIATE_TEST_SUITE_P(
    Methods, TemplateLanguage,
    testing::Values(Case{"{{ messages[0].content.strip() }}|{{ messages[0]['content'] | trim }}",
                         "Be nice.|Be nice."},
                    Case{"{{ messages[2].content.split('</think>')[-1].lstrip('\\n') }}", "Yo"},
                    Case{"{{ 'a,b,c'.rsplit(',', 1)[0] }} {{ 'a,b'.partition(',') }} {{ "
                         "'abc'.removeprefix('a').removesuffix('c') }}",
                         "a,b ['a', ',', 'b'] b"},
                    Case{"{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ "
                         "'Ab'.upper() }} {{ 'aXa'.replace('a', '') }}",
                         "True True AB X"},
                    Case{"{% for k, v in messages[2].tool_calls[0].function.arguments.items() %}{{ "
                         "k }},{% endfor %}",
                         "city,n,x,big,small,yes,no,list,items,"},
                    Case{"{{ messages[0].get('nope', 'd') }} {{ messages[0].get('role') }} {{ "
                         "messages[0].keys() | list }}",
                         "d system ['role', 'content']"}));

INSTANTIATE_TEST_SUITE_P(
    Values, TemplateLanguage,
    testing::Values(
        Case{"{{ true }} {{ 1.0 }} {{ 1/3 }} {{ 7 // 2 }} {{ 1e22 }} {{ [1, 'a', none] }} {{ (1, "
             "2) }} {{ {'a': true} }}",
             "True 1.0 0.3333333333333333 3 1e+22 [1, 'a', None] (1, 2) {'a': True}"},
        Case{"{{ messages[1].content is string }} {{ messages is iterable }} {{ none is iterable "
             "}} {{ 'x' is sequence }} "
             "{{ messages[0] is mapping }} {{ tools is none }}",
             "True True False True True False"},
        Case{"{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | "
             "map(attribute='role') | join('+') }}",
             "1 system+user+assistant"},
        Case{"{{ messages[::-1][0].role }} {{ messages[1:] | length }} {{ messages[-1].role }} {{ "
             "'häh'[1] }}",
             "assistant 2 assistant ä"},
        Case{"{{ messages[1].content | e }}", "Hi &#34;you&#34; é"},
        Case{"{{ '%s-%d' | format('a', 3) }} {{ 'a' ~ 1 ~ true }} {{ [1] + [2] }} {{ 'ab' * 2 }}",
             "a-3 a1True [1, 2] abab"}));

INSTANTIATE_TEST_SUITE_P(
    Statements, TemplateLanguage,
    testing::Values(Case{"{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + "
                         "1 %}{% endfor %}{{ ns.n }}",
                         "3"},
                    Case{"{% for m in messages %}{% if loop.last %}{% break %}{% endif %}{% if "
                         "loop.first %}{% continue %}{% endif %}{{ m.role }}{% endfor %}",
                         "user"},
                    Case{"{% macro tag(m, end='.') %}<{{ m.role }}{{ end }}>{% endmacro %}{{ "
                         "tag(messages[0]) }}{{ tag(messages[1], end='!') }}",
                         "<system.><user!>"},
                    Case{"{% set text %}\n a {{ 1 }}\n{% endset %}[{{ text }}]", "[ a 1\n]"},
                    Case{"{{ add_generation_prompt }} {{ bos_token }} {{ eos_token }} {{ pad_token "
                         "}} {{ unk_token is defined }}",
                         "True <s> <|im_end|> <pad> False"}));

TEST(TemplateFunctions, StrftimeNowFormatsToday) {
  const auto chat = test::template_of("{{ strftime_now('%Y-%m-%d, %%') }}");
  EXPECT_TRUE(std::regex_match(chat.render(kMessages, nullptr, false).text,
                               std::regex(R"(20\d\d-[01]\d-[0-3]\d, %)")));
}

}  // namespace
}  // namespace aitraining::text
