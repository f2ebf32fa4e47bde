#include "messages.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace aitraining::data {
namespace {

using nlohmann::ordered_json;
using test::expect_user_error;

Conversation read(const std::string& row_json) {
  return read_conversation(ordered_json::parse(row_json), "messages", "f.jsonl:7");
}

// One conversation whose assistant turn is `message`.
ordered_json turn(const std::string& message) { return read(R"({"messages":[)" + message + "]}").messages[0]; }

TEST(ReadConversation, AbsentKeysStayAbsentAndNullsBecomeAbsent) {
  EXPECT_EQ(turn(R"({"role":"user","content":"q"})"), (ordered_json{{"role", "user"}, {"content", "q"}}));
  EXPECT_EQ(turn(R"({"role":"user","content":"q","name":null,"tool_calls":null})"),
            (ordered_json{{"role", "user"}, {"content", "q"}}));
  EXPECT_EQ(turn(R"({"role":"user","content":"q","name":"n"})")["name"], "n");
  EXPECT_FALSE(turn(R"({"role":"assistant","content":"a","tool_calls":[]})").contains("tool_calls"));
}

TEST(ReadConversation, ContentMayBeNullOrAbsent) {
  EXPECT_TRUE(turn(R"({"role":"assistant","content":null})").at("content").is_null());
  const auto call = turn(R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]})");
  EXPECT_FALSE(call.contains("content"));
}

TEST(ReadConversation, TextPartsAreJoined) {
  EXPECT_EQ(turn(R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},"c"]})")["content"], "abc");
  EXPECT_EQ(turn(R"({"role":"user","content":[{"type":"text","text":"a","image":null}]})")["content"], "a");
  expect_user_error([] { turn(R"({"role":"user","content":[{"type":"image","url":"x"}]})"); },
                    {"f.jsonl:7, message 1", "`image`"});
  expect_user_error([] { turn(R"({"role":"user","content":{"a":1}})"); }, {"f.jsonl:7, message 1", "object"});
  EXPECT_EQ(turn(R"({"role":"user","content":42})")["content"], "42");
}

TEST(ReadConversation, ArgumentsInBothSpellingsAreTheSame) {
  const auto object = turn(R"({"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":)"
                           R"({"name":"f","arguments":{"city":"Rome","days":2,"unit":null}}}]})");
  const auto text = turn(R"({"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":)"
                         R"({"name":"f","arguments":"{\"city\": \"Rome\", \"days\": 2}"}}]})");
  EXPECT_EQ(object, text);
  EXPECT_EQ(text["tool_calls"][0]["function"]["arguments"], (ordered_json{{"city", "Rome"}, {"days", 2}}));
  const auto flat = turn(R"({"role":"assistant","tool_calls":"[{\"name\":\"f\",\"arguments\":\"\"}]"})");
  EXPECT_EQ(flat["tool_calls"], ordered_json::parse(R"([{"name":"f","arguments":{}}])"));
}

TEST(ReadConversation, MalformedToolJsonNamesTheRow) {
  const auto call = [](const std::string& arguments) {
    return R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":)" + ordered_json(arguments).dump() + "}}]}";
  };
  expect_user_error([&] { turn(call("{\"a\": }")); }, {"f.jsonl:7, message 1", "arguments", "not valid JSON", "{\"a\": }"});
  expect_user_error([&] { turn(call("[1]")); }, {"f.jsonl:7", "JSON object"});
  expect_user_error([] { read(R"({"messages":[],"tools":"[{"})"); }, {"f.jsonl:7", "`tools` is not valid JSON"});
  expect_user_error([] { read(R"({"messages":[],"tools":["f"]})"); }, {"f.jsonl:7", "`tools` must be a list of objects"});
  expect_user_error([] { turn(R"({"role":"assistant","tool_calls":{"a":1}})"); }, {"f.jsonl:7", "tool_calls"});
}

TEST(ReadConversation, ToolsAsListAndAsText) {
  const auto list = read(R"({"messages":[],"tools":[{"name":"f","parameters":{"type":"object","default":null}}]})");
  const auto text = read(R"({"messages":[],"tools":"[{\"name\":\"f\",\"parameters\":{\"type\":\"object\"}}]"})");
  EXPECT_EQ(list.tools, text.tools);
  EXPECT_EQ(list.tools[0]["name"], "f");
  for (const char* none : {R"({"messages":[]})", R"({"messages":[],"tools":null})", R"({"messages":[],"tools":[]})",
                           R"({"messages":[],"tools":""})"})
    EXPECT_TRUE(read(none).tools.is_null()) << none;
}

TEST(ReadConversation, MessagesAsJsonText) {
  const ordered_json row = {{"messages", R"([{"role": "user", "content": "true"}])"}};
  EXPECT_EQ(read(row.dump()).messages, ordered_json::parse(R"([{"role":"user","content":"true"}])"));
}

TEST(ReadConversation, FromAndValue) {
  const auto result = read(R"({"messages":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}]})");
  EXPECT_TRUE(result.renamed_keys);
  EXPECT_EQ(result.messages,
            ordered_json::parse(R"([{"role":"user","content":"q"},{"role":"assistant","content":"a"}])"));
  expect_user_error([] { turn(R"({"from":"narrator","value":"q"})"); }, {"f.jsonl:7, message 1", "narrator", "role"});
}

TEST(ReadConversation, MessagesWithNothingInThem) {
  expect_user_error([] { turn(R"({"role":"user"})"); }, {"f.jsonl:7, message 1", "`user`", "neither"});
  expect_user_error([] { turn(R"({"role":null,"content":"a"})"); }, {"f.jsonl:7, message 1", "\"role\" is not text"});
}

TEST(MergeSystem, GoesBeforeTheFirstUserText) {
  auto messages = ordered_json::parse(R"([{"role":"system","content":"s"},{"role":"user","content":"q"}])");
  EXPECT_TRUE(merge_system_into_user(messages));
  EXPECT_EQ(messages, ordered_json::parse(R"([{"role":"user","content":"s\n\nq"}])"));
  EXPECT_FALSE(merge_system_into_user(messages));
  auto alone = ordered_json::parse(R"([{"role":"system","content":"s"},{"role":"assistant","content":"a"}])");
  EXPECT_FALSE(merge_system_into_user(alone));
}

}  // namespace
}  // namespace aitraining::data
