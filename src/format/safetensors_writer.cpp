#include "aitraining/format/safetensors_writer.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "aitraining/core/error.h"
#include "dtype.h"

namespace aitraining::format {
namespace {

// Wide types first, as the format's reference implementation orders them: readers that view the bytes in place need
// each tensor aligned to its own type.
std::vector<PlannedTensor> in_file_order(std::vector<PlannedTensor> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const PlannedTensor& a, const PlannedTensor& b) {
    return block_layout(a.dtype).bytes > block_layout(b.dtype).bytes;
  });
  return tensors;
}

uint64_t planned_bytes(const PlannedTensor& tensor) {
  AIT_CHECK(!is_quantized(tensor.dtype), "{} cannot be written as {}", tensor.name, dtype_name(tensor.dtype));
  const auto elements = checked_elements(tensor.shape);
  AIT_CHECK(elements.has_value(), "shape {} of {}", shape_text(tensor.shape), tensor.name);
  return static_cast<uint64_t>(*elements) * static_cast<uint64_t>(block_layout(tensor.dtype).bytes);
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path file, const std::vector<PlannedTensor>& tensors,
                                     const std::map<std::string, std::string>& metadata, Mode mode)
    : file_(std::move(file), mode == Mode::create ? FileWriter::Open::create : FileWriter::Open::existing) {
  using Json = nlohmann::ordered_json;
  std::map<std::string, std::string> complete = metadata;
  complete["format"] = "pt";
  // Put together by hand: an ordered JSON object looks through all its keys for each new one.
  std::string text = "{\"__metadata__\":" + Json(complete).dump();
  uint64_t at = 0;
  for (const PlannedTensor& tensor : in_file_order(tensors)) {
    const uint64_t end = at + planned_bytes(tensor);
    AIT_CHECK(tensor.name != "__metadata__" && slots_.emplace(tensor.name, Slot{tensor.dtype, at, end, 0}).second,
              "{} is planned twice", tensor.name);
    const Json entry = {{"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    text += "," + Json(tensor.name).dump() + ":" + entry.dump();
    at = end;
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size(), data_begin = sizeof length + text.size();
  data_bytes_ = at;
  for (auto& [name, slot] : slots_) {
    slot.begin += data_begin;
    slot.end += data_begin;
  }
  if (mode == Mode::join) return;
  file_.write(&length, sizeof length);
  file_.write(text.data(), text.size());
  if (at > 0) file_.write_at(data_begin + at - 1, "", 1);
}

void SafetensorsWriter::write(const std::string& name, int64_t first, int64_t count, const void* data) {
  const auto found = slots_.find(name);
  AIT_CHECK(found != slots_.end(), "{} was not planned", name);
  Slot& slot = found->second;
  const auto width = static_cast<uint64_t>(block_layout(slot.dtype).bytes);
  const auto elements = static_cast<int64_t>((slot.end - slot.begin) / width);
  AIT_CHECK(first >= 0 && count >= 0 && first <= elements && count <= elements - first, "elements [{}, {}+{}) of {} in {}",
            first, first, count, elements, name);
  const uint64_t bytes = static_cast<uint64_t>(count) * width;
  if (bytes == 0) return;
  file_.write_at(slot.begin + static_cast<uint64_t>(first) * width, data, bytes);
  slot.written += bytes;
  written_bytes_ += bytes;
}

void SafetensorsWriter::finish_part() { file_.finish(); }

void SafetensorsWriter::finish() {
  for (const auto& [name, slot] : slots_)
    AIT_CHECK(slot.written == slot.end - slot.begin, "{}: {} of {} bytes written", name, slot.written,
              slot.end - slot.begin);
  file_.finish();
}

}  // namespace aitraining::format
