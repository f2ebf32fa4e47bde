// Broken and hostile safetensors files: each is refused with the file and the tensor named.
#include <gtest/gtest.h>

#include "aitraining/format/tensor_store.h"
#include "support/expect_error.h"
#include "support/weight_files.h"

namespace aitraining::format {
namespace {

using test::expect_user_error;
using test::raw;
using test::safetensors_bytes;

struct Broken {
  const char* what;
  std::string bytes;
  std::vector<std::string> message;
};

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets, size_t data) {
  return safetensors_bytes("{" + entry("w.q", dtype, shape, offsets) + "}", std::string(data, '\0'));
}

std::string two(const std::string& a, const std::string& b, size_t data) {
  const std::string header = "{" + entry("a", "F32", "[1]", a) + "," + entry("b", "F32", "[1]", b) + "}";
  return safetensors_bytes(header, std::string(data, '\0'));
}

std::vector<Broken> broken_frames() {
  const std::string deep(100'000, '['), objects = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += R"({"a":)";
    return text;
  }();
  return {
      {"0 bytes", "", {"0 bytes"}},
      {"7 bytes", "1234567", {"7 bytes"}},
      {"8 bytes, length 0", raw<uint64_t>(0), {"JSON"}},
      {"8 bytes, length 1", raw<uint64_t>(1), {"1 bytes, 0 are there"}},
      {"length 2^63", raw<uint64_t>(1ull << 63) + "{}", {"9223372036854775808", "limit"}},
      {"length 2^64-1", raw<uint64_t>(~0ull) + "{}", {"18446744073709551615", "limit"}},
      {"length 100 MB + 1", raw<uint64_t>(100'000'001) + "{}", {"limit"}},
      {"length beyond the file", raw<uint64_t>(100'000'000) + "{}", {"100000000 bytes, 2 are there"}},
      {"Git LFS pointer", "version https://git-lfs.github.com/spec/v1\n", {"git lfs pull"}},
      {"not JSON", safetensors_bytes("{\"a\":", ""), {"JSON"}},
      {"text behind the object", safetensors_bytes("{}{}", ""), {"JSON"}},
      {"not UTF-8", safetensors_bytes("{\"\xff\":1}", ""), {"JSON"}},
      {"array", safetensors_bytes("[]", ""), {"not a JSON object"}},
      {"number", safetensors_bytes("1", ""), {"not a JSON object"}},
      {"nested arrays", safetensors_bytes(deep, ""), {"nested deeper"}},
      {"nested arrays in an entry", safetensors_bytes("{\"w\":" + deep, ""), {"nested deeper"}},
      {"nested objects", safetensors_bytes(objects, ""), {"nested deeper"}},
      {"data of no tensor", safetensors_bytes("{}", "1234"), {"4 bytes behind the last tensor"}},
      {"metadata of numbers", safetensors_bytes(R"({"__metadata__":{"a":1}})", ""), {"__metadata__", "\"a\""}},
      {"metadata a list", safetensors_bytes(R"({"__metadata__":[]})", ""), {"__metadata__"}},
      {"doubled tensor",
       safetensors_bytes("{" + entry("w", "F32", "[1]", "[0,4]") + "," + entry("w", "F32", "[1]", "[0,4]") + "}", "1234"),
       {"\"w\"", "twice"}},
      {"doubled key in an entry",
       safetensors_bytes(R"({"w":{"dtype":"F32","dtype":"I8","shape":[1],"data_offsets":[0,4]}})", "1234"),
       {"\"dtype\"", "twice"}},
  };
}

std::vector<Broken> broken_entries() {
  return {
      {"entry not an object", safetensors_bytes(R"({"w.q":7})", ""), {"w.q"}},
      {"unknown key", safetensors_bytes(R"({"w.q":{"dtype":"F32","shape":[],"data_offsets":[0,4],"x":1}})", "1234"),
       {"w.q", "\"x\""}},
      {"no dtype", safetensors_bytes(R"({"w.q":{"shape":[1],"data_offsets":[0,4]}})", "1234"), {"w.q", "dtype"}},
      {"no shape", safetensors_bytes(R"({"w.q":{"dtype":"F32","data_offsets":[0,4]}})", "1234"), {"w.q", "shape"}},
      {"no offsets", safetensors_bytes(R"({"w.q":{"dtype":"F32","shape":[1]}})", "1234"), {"w.q", "data_offsets"}},
      {"dtype a number", safetensors_bytes(R"({"w.q":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", "1234"), {"w.q"}},
      {"dtype unknown", one("F7", "[1]", "[0,4]", 4), {"w.q", "F7"}},
      {"dtype quantised", one("Q4_0", "[32]", "[0,18]", 18), {"w.q", "Q4_0"}},
      {"reversed", one("F32", "[1]", "[4,0]", 4), {"w.q", "reversed"}},
      {"beyond the file", one("F32", "[2]", "[0,8]", 4), {"w.q", "beyond", "4 bytes"}},
      {"far beyond the file", one("F32", "[1]", "[18446744073709551608,18446744073709551612]", 4), {"w.q", "beyond"}},
      {"offset over 64 bits", one("F32", "[1]", "[0,18446744073709551620]", 4), {"w.q", "pair of offsets"}},
      {"negative offset", one("F32", "[1]", "[-4,0]", 4), {"w.q", "pair of offsets"}},
      {"three offsets", one("F32", "[1]", "[0,4,4]", 4), {"w.q", "pair of offsets"}},
      {"overlapping", two("[0,4]", "[2,6]", 6), {"\"b\"", "overlap"}},
      {"same place", two("[0,4]", "[0,4]", 4), {"overlap"}},
      {"hole", two("[0,4]", "[8,12]", 12), {"\"b\"", "hole of 4 bytes"}},
      {"hole at the front", one("F32", "[1]", "[4,8]", 8), {"w.q", "hole"}},
      {"shape and span differ", one("F32", "[3]", "[0,4]", 4), {"w.q", "12 bytes", "span 4"}},
      {"product over 64 bits", one("F32", "[4294967296,4294967296]", "[0,0]", 0), {"w.q", "too large"}},
      {"bytes over 64 bits", one("F32", "[4611686018427387904]", "[0,0]", 0), {"w.q", "too large"}},
      {"product that wraps to the span", one("F32", "[9223372036854775807,2,2]", "[0,0]", 0), {"w.q", "too large"}},
      {"negative dim", one("F32", "[-1]", "[0,4]", 4), {"w.q", "-1"}},
      {"two negative dims", one("F32", "[-1,-1]", "[0,4]", 4), {"w.q", "-1"}},
      {"float dim", one("F32", "[1.0]", "[0,4]", 4), {"w.q", "1.0"}},
      {"dim 2^63", one("F32", "[9223372036854775808]", "[0,4]", 4), {"w.q"}},
      {"dim a string", one("F32", "[\"1\"]", "[0,4]", 4), {"w.q"}},
      {"shape a number", one("F32", "1", "[0,4]", 4), {"w.q", "shape"}},
      {"control characters in the name", safetensors_bytes("{\"a\\u001b[2Jb\":7}", ""), {"a?[2Jb"}},
  };
}

void check_all(const std::vector<Broken>& cases) {
  const test::TempDir folder;
  for (const Broken& broken : cases) {
    SCOPED_TRACE(broken.what);
    const auto file = folder.write("weights.safetensors", broken.bytes);
    std::vector<std::string> parts = broken.message;
    parts.push_back(file.string());
    expect_user_error([&] { open_safetensors(file); }, parts);
  }
}

TEST(SafetensorsHostile, Frames) { check_all(broken_frames()); }
TEST(SafetensorsHostile, Entries) { check_all(broken_entries()); }

TEST(SafetensorsHostile, EveryTruncationIsRefused) {
  const test::TempDir folder;
  const std::string whole = two("[0,4]", "[4,8]", 8);
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto file = folder.write("cut.safetensors", whole.substr(0, length));
    expect_user_error([&] { open_safetensors(file); }, {file.string()});
  }
  EXPECT_EQ(open_safetensors(folder.write("whole.safetensors", whole))->tensors().size(), 2u);
}

TEST(SafetensorsHostile, ManyTensorsDoNotTakeQuadraticTime) {
  std::string header = "{";
  constexpr int kCount = 200'000;
  for (int i = 0; i < kCount; ++i) header += (i ? "," : "") + entry(std::to_string(i), "F32", "[0]", "[0,0]");
  const test::TempDir folder;
  EXPECT_EQ(open_safetensors(folder.write("many.safetensors", safetensors_bytes(header + "}", "")))->tensors().size(),
            static_cast<size_t>(kCount));
}

}  // namespace
}  // namespace aitraining::format
