#include "aitraining/format/gguf.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/weight_files.h"

namespace aitraining::format {
namespace {

using test::expect_user_error;
using test::GgufBuilder;
using test::raw;
using test::raw_all;
using test::TempDir;

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};

GgufBuilder small() {
  GgufBuilder file;
  file.value("u8", 0, raw<uint8_t>(200)).value("i8", 1, raw<int8_t>(-3)).value("u16", 2, raw<uint16_t>(60000));
  file.value("i16", 3, raw<int16_t>(-300)).u32("u32", 4000000000u).value("i32", 5, raw<int32_t>(-70000));
  file.f32("f32", 0.5f).flag("yes", true).string("text", "hi \xc3\xbc").strings("texts", {"a", "", "ccc"});
  file.value("u64", 10, raw<uint64_t>(1ull << 62)).value("i64", 11, raw<int64_t>(-1)).value("f64", 12, raw(0.1));
  file.value("big", 10, raw<uint64_t>(~0ull));
  file.value("ints", 9, raw<uint32_t>(5) + raw<uint64_t>(3) + raw_all<int32_t>({1, -2, 3}));
  file.value("reals", 9, raw<uint32_t>(6) + raw<uint64_t>(2) + raw_all<float>({0.25f, -1}));
  file.value("nested", 9, raw<uint32_t>(9) + raw<uint64_t>(1) + raw<uint32_t>(0) + raw<uint64_t>(2) + "ab");
  return file;
}

TEST(Gguf, MetadataOfEveryKind) {
  for (const uint32_t version : {2u, 3u}) {
    const TempDir folder;
    GgufBuilder builder = small();
    builder.version = version;
    const auto file = GgufFile::open(folder.write("x.gguf", builder.bytes()));
    EXPECT_EQ(file->integer("u8"), 200);
    EXPECT_EQ(file->integer("i8"), -3);
    EXPECT_EQ(file->integer("u16"), 60000);
    EXPECT_EQ(file->integer("i16"), -300);
    EXPECT_EQ(file->integer("u32"), 4000000000);
    EXPECT_EQ(file->integer("i32"), -70000);
    EXPECT_EQ(file->integer("u64"), int64_t{1} << 62);
    EXPECT_EQ(file->integer("i64"), -1);
    EXPECT_EQ(file->real("f32"), 0.5);
    EXPECT_EQ(file->real("f64"), 0.1);
    EXPECT_TRUE(file->boolean("yes", false));
    EXPECT_TRUE(file->boolean("absent", true));
    EXPECT_EQ(file->text("text"), "hi \xc3\xbc");
    EXPECT_EQ(file->texts("texts"), (std::vector<std::string>{"a", "", "ccc"}));
    EXPECT_EQ(file->integers("ints"), (std::vector<int64_t>{1, -2, 3}));
    EXPECT_EQ(file->reals("reals"), (std::vector<float>{0.25f, -1}));
    EXPECT_TRUE(file->has("nested"));
    EXPECT_FALSE(file->has("absent"));
  }
}

TEST(Gguf, WrongKindsNameFileAndKey) {
  const TempDir folder;
  const auto path = folder.write("x.gguf", small().bytes());
  const auto file = GgufFile::open(path);
  expect_user_error([&] { file->integer("absent"); }, {path.string(), "absent"});
  expect_user_error([&] { file->integer("text"); }, {path.string(), "\"text\"", "string", "integer"});
  expect_user_error([&] { file->integer("ints"); }, {"\"ints\"", "an array of int32"});
  expect_user_error([&] { file->integer("big"); }, {"\"big\"", "18446744073709551615"});
  expect_user_error([&] { file->real("u8"); }, {"\"u8\""});
  expect_user_error([&] { file->boolean("u8", false); }, {"\"u8\""});
  expect_user_error([&] { file->text("texts"); }, {"\"texts\""});
  expect_user_error([&] { file->texts("ints"); }, {"\"ints\""});
  expect_user_error([&] { file->integers("texts"); }, {"\"texts\""});
  expect_user_error([&] { file->reals("ints"); }, {"\"ints\""});
}

TEST(Gguf, TensorsWithTheirShapesTurnedRound) {
  const TempDir folder;
  for (const uint64_t alignment : {32u, 64u}) {
    GgufBuilder builder;
    builder.alignment = alignment;
    builder.u32("general.alignment", static_cast<uint32_t>(alignment));
    builder.tensor("w", {3, 2}, 0, raw_all(kValues)).tensor("h", {2}, 1, raw_all<uint16_t>({0x3c00, 0xc000}));
    builder.tensor("b", {1}, 30, raw_all<uint16_t>({0x4040}));
    const auto file = GgufFile::open(folder.write("x.gguf", builder.bytes()));
    EXPECT_EQ(file->tensors().at("w").shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(file->bytes(), 30u);
    std::vector<float> out(6);
    file->read_f32(file->tensors().at("w"), 0, 6, out.data());
    EXPECT_EQ(out, kValues);
    file->read_f32(file->tensors().at("h"), 1, 1, out.data());
    EXPECT_EQ(out[0], -2.0f);
    file->read_f32(file->tensors().at("b"), 0, 1, out.data());
    EXPECT_EQ(out[0], 3.0f);
    uint16_t bits = 0;
    file->read_bf16(file->tensors().at("h"), 0, 1, &bits);
    EXPECT_EQ(bits, 0x3f80);
  }
}

struct Broken {
  const char* what;
  std::string bytes;
  std::vector<std::string> message;
};

std::string head(uint32_t version, uint64_t tensors, uint64_t values) {
  return "GGUF" + raw(version) + raw(tensors) + raw(values);
}

std::vector<Broken> broken_heads() {
  const std::string key = GgufBuilder::text("k"), room(64, '\0');
  const auto array = [](uint32_t type, uint64_t count) { return raw<uint32_t>(9) + raw(type) + raw(count); };
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += raw<uint32_t>(9) + raw<uint64_t>(1);
  return {
      {"empty", "", {"ends inside"}},
      {"magic", "GGML" + room, {"not a GGUF file"}},
      {"Git LFS", "version https://git-lfs.github.com/spec/v1\n", {"git lfs pull"}},
      {"version 1", head(1, 0, 0), {"version 1"}},
      {"big endian", head(0x03000000, 0, 0), {"little-endian"}},
      {"2^63 values", head(3, 0, 1ull << 63), {"9223372036854775808"}},
      {"2^64-1 tensors", head(3, ~0ull, 0) + room, {"18446744073709551615"}},
      {"key of 2^64-1 bytes", head(3, 0, 1) + raw<uint64_t>(~0ull) + room, {"metadata key"}},
      {"key of no bytes", head(3, 0, 1) + raw<uint64_t>(0) + room, {"0 bytes"}},
      {"type 13", head(3, 0, 1) + key + raw<uint32_t>(13) + room, {"type 13"}},
      {"string beyond the file", head(3, 0, 1) + key + raw<uint32_t>(8) + raw<uint64_t>(65) + room, {"ends inside"}},
      {"array of 2^61 numbers", head(3, 0, 1) + key + array(10, 1ull << 61) + room, {"2305843009213693952"}},
      {"array of 2^64-1 strings", head(3, 0, 1) + key + array(8, ~0ull) + room, {"ends inside"}},
      {"array of type 99", head(3, 0, 1) + key + array(99, 1) + room, {"type 99"}},
      {"nested arrays", head(3, 0, 1) + key + raw<uint32_t>(9) + nested, {"nested deeper"}},
      {"doubled key", GgufBuilder().u32("k", 1).u32("k", 2).bytes(), {"\"k\"", "twice"}},
      {"alignment 0", GgufBuilder().u32("general.alignment", 0).bytes(), {"general.alignment 0"}},
      {"alignment 33", GgufBuilder().u32("general.alignment", 33).bytes(), {"general.alignment 33"}},
      {"split", GgufBuilder().value("split.count", 2, raw<uint16_t>(3)).bytes(), {"3 parts"}},
  };
}

std::vector<Broken> broken_tensors() {
  const std::string four(16, '\0');
  const auto one = [&](const std::vector<uint64_t>& dims, uint32_t type, int64_t offset = -1) {
    return GgufBuilder().tensor("blk.w", dims, type, four, offset).bytes();
  };
  return {
      {"five dimensions", one({1, 1, 1, 1, 1}, 0), {"blk.w", "5 dimensions"}},
      {"2^32-1 dimensions", head(3, 1, 0) + GgufBuilder::text("blk.w") + raw<uint32_t>(~0u) + four, {"blk.w"}},
      {"dimension 2^63", one({1ull << 63}, 0), {"blk.w", "9223372036854775808"}},
      {"product over 64 bits", one({1ull << 32, 1ull << 32}, 0), {"blk.w", "too large"}},
      {"bytes over 64 bits", one({1ull << 62}, 0), {"blk.w", "too large"}},
      {"unknown type", one({4}, 250), {"blk.w", "type 250"}},
      {"unsupported type", one({32}, 20), {"blk.w", "IQ4_NL", "Q4_K"}},
      {"removed type", one({32}, 4), {"blk.w", "type 4"}},
      {"rows that do not fill blocks", one({31}, 2), {"blk.w", "31", "32"}},
      {"beyond the file", one({4096}, 0), {"blk.w", "16384 bytes", "beyond"}},
      {"offset not zero", one({4}, 0, 32), {"blk.w", "offset is 32"}},
      {"offset 2^63-1", one({4}, 0, INT64_MAX), {"blk.w", "offset"}},
      {"overlapping", GgufBuilder().tensor("a", {4}, 0, four).tensor("b", {4}, 0, four, 0).bytes(), {"\"b\"", "offset is 0"}},
      {"hole", GgufBuilder().tensor("a", {4}, 0, four).tensor("b", {4}, 0, four, 64).bytes(), {"\"b\"", "offset is 64"}},
      {"doubled", GgufBuilder().tensor("a", {4}, 0, four).tensor("a", {4}, 0, four).bytes(), {"\"a\"", "twice"}},
  };
}

void check_all(const std::vector<Broken>& cases) {
  const TempDir folder;
  for (const Broken& broken : cases) {
    SCOPED_TRACE(broken.what);
    const auto file = folder.write("x.gguf", broken.bytes);
    std::vector<std::string> parts = broken.message;
    parts.push_back(file.string());
    expect_user_error([&] { GgufFile::open(file); }, parts);
  }
}

TEST(GgufHostile, Heads) { check_all(broken_heads()); }
TEST(GgufHostile, Tensors) { check_all(broken_tensors()); }

TEST(GgufHostile, EveryTruncationIsRefused) {
  const TempDir folder;
  const std::string padded = small().tensor("w", {3, 2}, 0, raw_all(kValues)).bytes();
  const std::string whole = padded.substr(0, padded.size() - 8);  // without the padding behind the last tensor
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto file = folder.write("x.gguf", whole.substr(0, length));
    expect_user_error([&] { GgufFile::open(file); }, {file.string()});
  }
  EXPECT_EQ(GgufFile::open(folder.write("x.gguf", whole))->tensors().size(), 1u);
}

// No byte may bring the reader to read outside the file or to allocate what it claims; sanitizers watch this one.
TEST(GgufHostile, FlippedBytesNeverDoMoreThanFail) {
  const TempDir folder;
  const std::string whole = small().tensor("w", {3, 2}, 0, raw_all(kValues)).bytes();
  std::vector<float> out(6);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x91);
    const auto path = folder.write("x.gguf", broken);
    try {
      const auto file = GgufFile::open(path);
      for (const auto& [name, info] : file->tensors()) file->read_f32(info, 0, std::min<int64_t>(6, info.elements()), out.data());
      for (const char* key : {"ints", "u8"})
        if (file->has(key)) file->integers(key);
      if (file->has("texts")) file->texts("texts");
    } catch (const UserError&) {
    }
  }
}

TEST(FindGguf, FileFolderAndAmbiguity) {
  const TempDir folder;
  EXPECT_EQ(find_gguf(folder.path()), std::nullopt);
  EXPECT_EQ(find_gguf(folder.path() / "none"), std::nullopt);
  const auto file = folder.write("model.Q4_1.gguf", "x");
  EXPECT_EQ(find_gguf(file), file);
  EXPECT_EQ(find_gguf(folder.path()), file);
  EXPECT_EQ(find_gguf(folder.write("readme.txt", "x")), std::nullopt);
  folder.write("other.GGUF", "x");
  expect_user_error([&] { find_gguf(folder.path()); }, {"model.Q4_1.gguf", "other.GGUF"});
  folder.write("config.json", "{}");
  EXPECT_EQ(find_gguf(folder.path()), std::nullopt);
}

}  // namespace
}  // namespace aitraining::format
