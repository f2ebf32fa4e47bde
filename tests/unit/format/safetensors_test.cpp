#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "aitraining/core/files.h"
#include "aitraining/format/safetensors_writer.h"
#include "aitraining/format/tensor_store.h"
#include "support/expect_error.h"
#include "support/weight_files.h"

namespace aitraining::format {
namespace {

namespace fs = std::filesystem;
using test::expect_user_error;
using test::raw_all;
using test::safetensors_bytes;
using test::TempDir;

std::string header_of(const fs::path& file) {
  const std::string all = read_file(file);
  uint64_t length = 0;
  std::memcpy(&length, all.data(), 8);
  return all.substr(8, length);
}

std::vector<float> floats(const TensorStore& store, const std::string& name) {
  const TensorInfo& info = store.tensors().at(name);
  std::vector<float> out(static_cast<size_t>(info.elements()));
  store.read_f32(info, 0, info.elements(), out.data());
  return out;
}

std::string f32_file(const std::string& name, const std::vector<float>& values) {
  const std::string size = std::to_string(values.size()), bytes = std::to_string(4 * values.size());
  return safetensors_bytes("{\"" + name + R"(":{"dtype":"F32","shape":[)" + size + R"(],"data_offsets":[0,)" + bytes + "]}}",
                           raw_all(values));
}

TEST(Safetensors, WriterAndReaderAgree) {
  const TempDir folder;
  const fs::path file = folder.path() / "model.safetensors";
  const std::vector<float> a = {1.5f, -2.0f, 0.25f, 3e-39f, 1e30f, -0.0f};
  const std::vector<uint16_t> b = {0x3f80, 0xc000, 0x7f80};
  {
    SafetensorsWriter writer(file, {{"b", DType::bf16, {3}}, {"a", DType::f32, {2, 3}}, {"none", DType::f32, {0, 4}}},
                             {{"step", "12"}, {"format", "np"}});
    writer.write("a", 4, 2, a.data() + 4);
    writer.write("b", 0, 3, b.data());
    writer.write("a", 0, 4, a.data());
    writer.finish();
  }
  const auto store = open_safetensors(folder.path());
  EXPECT_EQ(store->tensors().size(), 3u);
  EXPECT_EQ(store->tensors().at("a").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(store->tensors().at("none").shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(store->bytes(), 30u);
  const auto read = floats(*store, "a");
  EXPECT_EQ(std::memcmp(read.data(), a.data(), 24), 0);
  EXPECT_EQ(floats(*store, "b"), (std::vector<float>{1.0f, -2.0f, std::numeric_limits<float>::infinity()}));
  EXPECT_TRUE(floats(*store, "none").empty());
  const auto header = nlohmann::ordered_json::parse(header_of(file));
  EXPECT_EQ(header["__metadata__"], (nlohmann::ordered_json{{"format", "pt"}, {"step", "12"}}));
  EXPECT_EQ(header_of(file).size() % 8, 0u);
  // Wide types first, else as given; so that each tensor is aligned to its own type.
  EXPECT_EQ(header["a"]["data_offsets"], (nlohmann::ordered_json{0, 24}));
  EXPECT_EQ(header["none"]["data_offsets"], (nlohmann::ordered_json{24, 24}));
  EXPECT_EQ(header["b"]["data_offsets"], (nlohmann::ordered_json{24, 30}));
}

TEST(Safetensors, WriterKeepsTheGivenOrder) {
  const TempDir folder;
  SafetensorsWriter writer(folder.path() / "x.safetensors", {{"z", DType::f32, {1}}, {"a", DType::f32, {1}}});
  const float value = 1;
  writer.write("z", 0, 1, &value);
  writer.write("a", 0, 1, &value);
  writer.finish();
  EXPECT_EQ(header_of(folder.path() / "x.safetensors").find(
                R"({"__metadata__":{"format":"pt"},"z":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":)"),
            0u);
}

TEST(Safetensors, WriterRefusesWhatItCannotKeep) {
  const TempDir folder;
  const fs::path file = folder.path() / "x.safetensors";
  const std::vector<float> values(4);
  {
    SafetensorsWriter writer(file, {{"w", DType::f32, {4}}});
    writer.write("w", 0, 3, values.data());
    EXPECT_THROW(writer.finish(), BugError);
    EXPECT_THROW(writer.write("w", 3, 2, values.data()), BugError);
    EXPECT_THROW(writer.write("v", 0, 1, values.data()), BugError);
    writer.write("w", 3, 1, values.data());
    writer.finish();
  }
  EXPECT_THROW(SafetensorsWriter(file, {{"w", DType::f32, {4}}, {"w", DType::f32, {4}}}), BugError);
  EXPECT_THROW(SafetensorsWriter(file, {{"w", DType::q4_0, {32}}}), BugError);
  EXPECT_THROW(SafetensorsWriter(file, {{"w", DType::f32, {-1}}}), BugError);
}

TEST(Safetensors, FileWithoutMetadataLoads) {
  const TempDir folder;
  EXPECT_EQ(floats(*open_safetensors(folder.write("w.safetensors", f32_file("w", {1, 2}))), "w"),
            (std::vector<float>{1, 2}));
}

TEST(Safetensors, EmptyFileOfNoTensorsLoads) {
  const TempDir folder;
  EXPECT_TRUE(open_safetensors(folder.write("w.safetensors", safetensors_bytes("{}  ", "")))->tensors().empty());
}

TEST(Safetensors, ElementRanges) {
  const TempDir folder;
  std::vector<float> values(20000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.5f;
  const auto store = open_safetensors(folder.write("w.safetensors", f32_file("w", values)));
  const TensorInfo& info = store->tensors().at("w");
  std::vector<float> part(9000);
  store->read_f32(info, 10999, 9000, part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), values.begin() + 10999));
  store->read_f32(info, 20000, 0, nullptr);
  store->release_pages();
  store->read_f32(info, 0, 1, part.data());
  EXPECT_EQ(part[0], 0.0f);
  EXPECT_THROW(store->read_f32(info, 19999, 2, part.data()), BugError);
  EXPECT_THROW(store->read_f32(info, -1, 1, part.data()), BugError);
  EXPECT_THROW(store->read_f32(info, 1, std::numeric_limits<int64_t>::max(), part.data()), BugError);
}

int64_t resident_file_pages_kib() {
  std::ifstream status("/proc/self/status");
  int64_t kib = 0;
  // Files in a tmpfs are counted as shared memory.
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssFile:") || line.starts_with("RssShmem:")) kib += std::stoll(line.substr(line.find(':') + 1));
  return kib;
}

TEST(Safetensors, PagesDoNotStayResident) {
  const TempDir folder;
  const std::vector<float> values(8 << 20, 1.0f);  // 32 MiB
  const auto store = open_safetensors(folder.write("w.safetensors", f32_file("w", values)));
  const TensorInfo& info = store->tensors().at("w");
  std::vector<float> out(values.size());
  const int64_t before = resident_file_pages_kib();
  store->read_f32(info, 0, info.elements(), out.data());
  EXPECT_LT(resident_file_pages_kib() - before, 4096);
  for (int64_t at = 0; at < info.elements(); at += 4096) store->read_f32(info, at, 4096, out.data());
  EXPECT_GT(resident_file_pages_kib() - before, 16384);
  store->release_pages();
  EXPECT_LT(resident_file_pages_kib() - before, 4096);
}

TEST(Safetensors, ConversionsAreExact) {
  const TempDir folder;
  const std::string header =
      R"({"f64":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},"i64":{"dtype":"I64","shape":[1],"data_offsets":[16,24]},)"
      R"("f16":{"dtype":"F16","shape":[8],"data_offsets":[24,40]},"i8":{"dtype":"I8","shape":[1],"data_offsets":[40,41]},)"
      R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[41,42]}})";
  const std::string data = raw_all<double>({0.1, -1e300}) + raw_all<int64_t>({-7}) +
                           raw_all<uint16_t>({0x3c00, 0xc000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0x7c00, 0x8000}) +
                           std::string("\xfe\x01", 2);
  const auto store = open_safetensors(folder.write("w.safetensors", safetensors_bytes(header, data)));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(floats(*store, "f64"), (std::vector<float>{0.1f, -infinity}));
  EXPECT_EQ(floats(*store, "i64"), std::vector<float>{-7});
  const auto half = floats(*store, "f16");
  EXPECT_EQ(half, (std::vector<float>{1, -2, 0x1p-24f, -1023 * 0x1p-24f, 0x1p-14f, 65504, infinity, -0.0f}));
  EXPECT_TRUE(std::signbit(half[7]));
  EXPECT_EQ(floats(*store, "i8"), std::vector<float>{-2});
  EXPECT_EQ(floats(*store, "b"), std::vector<float>{1});
}

TEST(Safetensors, Bf16RoundsToNearestEven) {
  const TempDir folder;
  const std::vector<uint32_t> in = {0x3f800000, 0x3f808000, 0x3f818000, 0x3f808001, 0x3f807fff, 0x7f7fffff,
                                    0xff800000, 0x7f800001, 0xffc12345, 0x80000000, 0x00000001};
  std::vector<float> values;
  for (const uint32_t bits : in) values.push_back(std::bit_cast<float>(bits));
  const auto store = open_safetensors(folder.write("w.safetensors", f32_file("w", values)));
  std::vector<uint16_t> out(in.size());
  store->read_bf16(store->tensors().at("w"), 0, static_cast<int64_t>(in.size()), out.data());
  EXPECT_EQ(out, (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x3f81, 0x3f80, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x8000,
                                        0x0000}));
}

TEST(Safetensors, StoredBf16IsReadUnchanged) {
  const TempDir folder;
  // 0x7f81 is a signalling NaN: its bits must come through as well.
  const std::vector<uint16_t> in = {0x3f80, 0x7f81, 0xffff, 0x0001};
  const auto file = folder.write(
      "w.safetensors", safetensors_bytes(R"({"w":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]}})", raw_all(in)));
  const auto store = open_safetensors(file);
  std::vector<uint16_t> out(3);
  store->read_bf16(store->tensors().at("w"), 1, 3, out.data());
  EXPECT_EQ(out, (std::vector<uint16_t>{0x7f81, 0xffff, 0x0001}));
}

TEST(Safetensors, NanWeightsAreReadAsTheyAre) {
  const TempDir folder;
  const auto store = open_safetensors(folder.write("w.safetensors", f32_file("w", {std::nanf(""), 1})));
  EXPECT_TRUE(std::isnan(floats(*store, "w")[0]));
}

std::string index_of(const std::vector<std::pair<std::string, std::string>>& map) {
  nlohmann::ordered_json json = {{"metadata", {{"total_size", 8}}}, {"weight_map", nlohmann::ordered_json::object()}};
  for (const auto& [tensor, file] : map) json["weight_map"][tensor] = file;
  return json.dump();
}

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";

TEST(SafetensorsIndex, ShardsAreOneStoreAndStaleOnesAreIgnored) {
  const TempDir folder;
  folder.write(kFirst, f32_file("a", {1}));
  folder.write(kSecond, f32_file("b", {2}));
  folder.write("model-00003-of-00003.safetensors", "not even a safetensors file");
  folder.write("model.safetensors.index.json", index_of({{"a", kFirst}, {"b", kSecond}}));
  const auto store = open_safetensors(folder.path());
  EXPECT_EQ(store->tensors().size(), 2u);
  EXPECT_EQ(floats(*store, "a"), std::vector<float>{1});
  EXPECT_EQ(floats(*store, "b"), std::vector<float>{2});
  EXPECT_EQ(store->bytes(), 8u);
}

TEST(SafetensorsIndex, MissingShardsAreListed) {
  const TempDir folder;
  folder.write(kFirst, f32_file("a", {1}));
  folder.write("model.safetensors.index.json", index_of({{"a", kFirst}, {"b", kSecond}, {"c", "other.safetensors"}}));
  expect_user_error([&] { open_safetensors(folder.path()); }, {kSecond, "other.safetensors", "index.json"});
}

TEST(SafetensorsIndex, TensorMissingFromItsShardIsNamed) {
  const TempDir folder;
  folder.write(kFirst, f32_file("a", {1}));
  folder.write("model.safetensors.index.json", index_of({{"a", kFirst}, {"b.weight", kFirst}}));
  expect_user_error([&] { open_safetensors(folder.path()); }, {kFirst, "b.weight"});
}

TEST(SafetensorsIndex, TruncatedShardIsNamed) {
  const TempDir folder;
  const std::string whole = f32_file("a", {1, 2, 3});
  folder.write(kFirst, whole.substr(0, whole.size() - 1));
  folder.write("model.safetensors.index.json", index_of({{"a", kFirst}}));
  expect_user_error([&] { open_safetensors(folder.path()); }, {kFirst, "\"a\"", "beyond"});
}

TEST(SafetensorsIndex, BrokenIndexesAreRefused) {
  const TempDir folder;
  folder.write(kFirst, f32_file("a", {1}));
  for (const char* index : {"", "[]", "{}", R"({"weight_map":{}})", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})",
                            R"({"weight_map":{"a":"../x.safetensors"}})", R"({"weight_map":{"a":"/etc/passwd"}})",
                            R"({"weight_map":{"a":".."}})", R"({"weight_map":{"a":""}})",
                            R"({"weight_map":{"a":"x","a":"y"}})"}) {
    SCOPED_TRACE(index);
    folder.write("model.safetensors.index.json", index);
    expect_user_error([&] { open_safetensors(folder.path()); }, {"model.safetensors.index.json"});
  }
}

TEST(SafetensorsFolder, PickleIsNeverRead) {
  const TempDir folder;
  folder.write("config.json", "{}");
  folder.write("training_args.bin", "pickle");
  expect_user_error([&] { open_safetensors(folder.path()); }, {"no weights", "model.safetensors"});
  const auto bin = folder.write("pytorch_model.bin", "pickle");
  expect_user_error([&] { open_safetensors(folder.path()); }, {"pytorch_model.bin", "pickle", "safetensors"});
  expect_user_error([&] { open_safetensors(bin); }, {"pytorch_model.bin", "safetensors"});
  folder.write("model.safetensors", f32_file("a", {1}));
  EXPECT_EQ(open_safetensors(folder.path())->tensors().size(), 1u);
}

TEST(SafetensorsFolder, ShardedPickleIsNamed) {
  const TempDir folder;
  folder.write("pytorch_model-00001-of-00002.bin", "pickle");
  folder.write("pytorch_model.bin.index.json", "{}");
  expect_user_error([&] { open_safetensors(folder.path()); }, {"pytorch_model-00001-of-00002.bin", "safetensors"});
}

TEST(SafetensorsFolder, NothingThere) {
  const TempDir folder;
  expect_user_error([&] { open_safetensors(folder.path()); }, {folder.path().string(), "no weights"});
  expect_user_error([&] { open_safetensors(folder.path() / "none"); }, {"none", "no such"});
}

}  // namespace
}  // namespace aitraining::format
