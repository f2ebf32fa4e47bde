#include "named_store.h"

#include <algorithm>

#include "aitraining/core/error.h"

namespace aitraining::model {
namespace {

// Rows are read one by one; after this many elements their pages are given back.
constexpr int64_t kReleaseElements = 4 << 20;

// Row of the stored tensor that holds row `row` of Hugging Face's: within a head, (half, i) comes from (i, half).
int64_t stored_row(int64_t row, int64_t head_rows) {
  const int64_t head = row / head_rows, inside = row % head_rows, half = head_rows / 2;
  return head * head_rows + inside % half * 2 + inside / half;
}

}  // namespace

void NamedStore::add(const std::string& name, const std::string& inner_name, int64_t rotary_heads) {
  const auto found = inner_->tensors().find(inner_name);
  AIT_CHECK(found != inner_->tensors().end(), "no tensor {} in {}", inner_name, inner_->describe());
  const format::TensorInfo& inner = found->second;
  AIT_CHECK(rotary_heads == 0 || (!inner.shape.empty() && inner.shape[0] % (2 * rotary_heads) == 0),
            "{} heads in {}", rotary_heads, inner_name);
  format::TensorInfo info = inner;
  info.name = name;
  infos_[name] = info;
  sources_[name] = {&inner, rotary_heads};
}

template <class T, class Read>
void NamedStore::for_pieces(const format::TensorInfo& info, int64_t first, int64_t count, T* out, Read&& read) const {
  const auto found = sources_.find(info.name);
  AIT_CHECK(found != sources_.end(), "no tensor {} in {}", info.name, describe());
  const auto& [inner, heads] = found->second;
  const int64_t total = inner->elements();
  AIT_CHECK(first >= 0 && count >= 0 && first <= total && count <= total - first, "elements [{}, {}+{}) of {} in {}",
            first, first, count, total, info.name);
  if (heads == 0) return read(*inner, first, count, out);
  const int64_t rows = inner->shape[0], columns = total / rows;
  for (int64_t done = 0, since = 0; done < count;) {
    const int64_t at = first + done, column = at % columns;
    const int64_t step = std::min(columns - column, count - done);
    read(*inner, stored_row(at / columns, rows / heads) * columns + column, step, out + done);
    done += step;
    since += step;
    if (since < kReleaseElements) continue;
    inner_->release_pages();
    since = 0;
  }
}

void NamedStore::read_f32(const format::TensorInfo& info, int64_t first, int64_t count, float* out) const {
  for_pieces(info, first, count, out, [&](const format::TensorInfo& inner, int64_t at, int64_t n, float* to) {
    inner_->read_f32(inner, at, n, to);
  });
}

void NamedStore::read_bf16(const format::TensorInfo& info, int64_t first, int64_t count, uint16_t* out) const {
  for_pieces(info, first, count, out, [&](const format::TensorInfo& inner, int64_t at, int64_t n, uint16_t* to) {
    inner_->read_bf16(inner, at, n, to);
  });
}

}  // namespace aitraining::model
