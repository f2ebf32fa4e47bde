#include "aitraining/model/decoder.h"

#include <cmath>

#include "aitraining/core/error.h"
#include "aitraining/ops/kernels.h"
#include "aitraining/core/strings.h"
#include "decoder_units.h"
#include "aitraining/model/target_modules.h"

namespace aitraining::model {
namespace {

// A linear layer of one block and where it lies in its stacked weight.
struct Linear {
  std::string name;
  int64_t in, out;
};

std::vector<Linear> block_linears(const ModelConfig& c, const std::string& prefix) {
  const int64_t q = c.num_heads * c.head_dim, kv = c.num_kv_heads * c.head_dim;
  return {{prefix + "self_attn.q_proj", c.hidden_size, q},      {prefix + "self_attn.k_proj", c.hidden_size, kv},
          {prefix + "self_attn.v_proj", c.hidden_size, kv},     {prefix + "self_attn.o_proj", q, c.hidden_size},
          {prefix + "mlp.gate_proj", c.hidden_size, c.intermediate_size},
          {prefix + "mlp.up_proj", c.hidden_size, c.intermediate_size},
          {prefix + "mlp.down_proj", c.intermediate_size, c.hidden_size}};
}

}  // namespace

std::string lora_name(const std::string& module, char matrix) {
  return fmt::format("base_model.model.{}.lora_{}.weight", module, matrix);
}

struct Decoder::Builder {
  Decoder& d;
  const ModelConfig& c;
  ops::ParamGroup* adapters = nullptr;
  std::vector<bool> adapted;  // per linear layer, in model order
  size_t next_linear = 0;

  explicit Builder(Decoder& decoder) : d(decoder), c(decoder.config_) {}

  ops::ParamGroup* group(const std::string& name, bool trainable, bool whole = false) {
    d.chain_.groups.push_back(std::make_unique<ops::ParamGroup>(name, trainable, whole));
    return d.chain_.groups.back().get();
  }

  // Stacks `linears` into one weight and adds the adapters of those that have one.
  ops::Projection projection(ops::ParamGroup* group, const std::vector<Linear>& linears, bool bias) {
    ops::Projection p;
    std::vector<ops::ParamGroup::Part> weights, biases;
    for (const Linear& l : linears) {
      weights.push_back({l.name + ".weight", {l.out, l.in}});
      biases.push_back({l.name + ".bias", {l.out}});
    }
    p.weight = group->add(weights, true);
    if (bias) p.bias = group->add(biases, false);
    int64_t row = 0;
    for (const Linear& l : linears) {
      add_adapter(p, l, row);
      row += l.out;
    }
    return p;
  }

  void add_adapter(ops::Projection& p, const Linear& l, int64_t row) {
    const auto site = static_cast<int64_t>(next_linear++);
    if (adapters == nullptr || !adapted[site]) return;
    const LoraOptions& lora = *d.lora_;
    ops::LoraPart part;
    part.begin = row;
    part.end = row + l.out;
    part.a = adapters->add({{lora_name(l.name, 'A'), {lora.r, l.in}}}, true);
    part.b = adapters->add({{lora_name(l.name, 'B'), {l.out, lora.r}}}, true);
    part.scale = lora.alpha / static_cast<double>(lora.r);
    part.dropout = lora.dropout;
    part.site = site;
    p.lora.push_back(part);
    d.adapted_.push_back({l.name, l.in, l.out});
  }

  void choose_targets() {
    std::vector<std::string> names;
    for (int64_t i = 0; i < c.num_layers; ++i) {
      for (const Linear& l : block_linears(c, fmt::format("model.layers.{}.", i))) names.push_back(l.name);
    }
    adapted = match_target_modules(d.lora_->target_modules, names);
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string name = names[i].substr(names[i].rfind('.') + 1);
      auto& targets = d.target_names_;
      if (adapted[i] && std::find(targets.begin(), targets.end(), name) == targets.end()) targets.push_back(name);
    }
  }

  void block(int64_t index, bool trainable) {
    const std::string prefix = fmt::format("model.layers.{}.", index);
    auto* g = group(fmt::format("layers.{}", index), trainable);
    const auto l = block_linears(c, prefix);
    BlockParts parts;
    auto norm = [&](ops::Projection& p, const char* name) {
      p.prologue = ops::Projection::Prologue::rms_norm;
      p.norm = g->add({{prefix + name, {c.hidden_size}}}, false);
      p.norm_eps = c.rms_norm_eps;
    };
    parts.qkv = projection(g, {l[0], l[1], l[2]}, c.attention_bias);
    norm(parts.qkv, "input_layernorm.weight");
    parts.output = projection(g, {l[3]}, c.attention_bias);
    parts.gate_up = projection(g, {l[4], l[5]}, c.mlp_bias);
    norm(parts.gate_up, "post_attention_layernorm.weight");
    parts.down = projection(g, {l[6]}, c.mlp_bias);
    parts.down.prologue = ops::Projection::Prologue::swiglu;
    parts.attention = {c.num_heads, c.num_kv_heads, c.head_dim, 0};
    std::vector<ops::ParamGroup*> groups{g};
    if (adapters != nullptr) groups.push_back(adapters);
    d.chain_.units.push_back(std::make_unique<BlockUnit>(g->name(), groups, std::move(parts)));
  }

  void build() {
    const bool full = !d.lora_.has_value();
    auto* embed = group("embedding", full);
    const auto table = embed->add({{"model.embed_tokens.weight", {c.vocab_size, c.hidden_size}}}, true);
    d.chain_.units.push_back(std::make_unique<EmbeddingUnit>(std::vector<ops::ParamGroup*>{embed}, table));
    if (!full) {
      choose_targets();
      adapters = group("adapters", true, true);
    }
    for (int64_t i = 0; i < c.num_layers; ++i) block(i, full);
    auto* head_group = group("head", full);
    ops::Head head;
    head.norm = head_group->add({{"model.norm.weight", {c.hidden_size}}}, false);
    head.norm_eps = c.rms_norm_eps;
    std::vector<ops::ParamGroup*> groups{head_group};
    if (c.tie_word_embeddings) {
      head.weight = table;
      groups.push_back(embed);
    } else {
      head.weight = head_group->add({{"lm_head.weight", {c.vocab_size, c.hidden_size}}}, true);
    }
    d.chain_.units.push_back(std::make_unique<HeadUnit>(groups, head));
  }
};

Decoder::Decoder(ModelConfig config, std::optional<LoraOptions> lora)
    : config_(std::move(config)), lora_(std::move(lora)) {
  Builder(*this).build();
}

Decoder::~Decoder() = default;

int64_t Decoder::parameters() const {
  int64_t total = 0;
  for (const auto& g : chain_.groups) total += g->name() == "adapters" ? 0 : g->parameters();
  return total;
}

int64_t Decoder::trainable_parameters() const {
  int64_t total = 0;
  for (const auto& g : chain_.groups) total += g->trainable() ? g->parameters() : 0;
  return total;
}

const ops::Head& Decoder::head() const { return static_cast<const HeadUnit&>(*chain_.units.back()).head(); }

namespace {

// Frequencies as transformers computes them, in fp32 (rope_type default, linear, llama3; for the last see Llama 3.1's
// model card: wavelengths beyond the old context are stretched by `factor`, with a smooth band between).
at::Tensor rope_frequencies(const ModelConfig& c) {
  const int64_t half = c.head_dim / 2;
  auto exponent = at::arange(0, c.head_dim, 2, at::kLong).to(at::kFloat) / static_cast<double>(c.head_dim);
  auto frequency = 1.0 / at::pow(at::scalar_tensor(c.rope.theta, at::kFloat), exponent);
  if (c.rope.kind == RopeKind::linear) return frequency / c.rope.factor;
  if (c.rope.kind != RopeKind::llama3) return frequency;
  auto* f = frequency.data_ptr<float>();
  const double original = static_cast<double>(c.rope.original_max_position_embeddings);
  const double low = original / c.rope.low_freq_factor, high = original / c.rope.high_freq_factor;
  for (int64_t i = 0; i < half; ++i) {
    const float wavelength = static_cast<float>(2.0 * M_PI) / f[i];
    const float stretched = f[i] / static_cast<float>(c.rope.factor);
    if (wavelength > low) {
      f[i] = stretched;
    } else if (wavelength >= high) {
      const float smooth = (static_cast<float>(original) / wavelength - static_cast<float>(c.rope.low_freq_factor)) /
                           static_cast<float>(c.rope.high_freq_factor - c.rope.low_freq_factor);
      f[i] = (1.0f - smooth) * stretched + smooth * f[i];
    }
  }
  return frequency;
}

}  // namespace

void Decoder::add_rope(ops::Batch& batch) const {
  const int64_t needed = batch.positions.numel() == 0 ? 1 : batch.positions.max().item<int64_t>() + 1;
  if (!cos_table_.defined() || cos_table_.size(0) < needed || cos_table_.device() != batch.positions.device()) {
    const int64_t rows = std::max<int64_t>(needed, cos_table_.defined() ? 2 * cos_table_.size(0) : 256);
    auto angle = at::arange(rows, at::kFloat).unsqueeze(1) * rope_frequencies(config_).unsqueeze(0);
    cos_table_ = at::cos(angle).to(batch.positions.device());
    sin_table_ = at::sin(angle).to(batch.positions.device());
  }
  batch.rope_cos = cos_table_.index_select(0, batch.positions);
  batch.rope_sin = sin_table_.index_select(0, batch.positions);
}

namespace {

constexpr int64_t kPiece = int64_t{1} << 22;  // elements read at a time, so that few file pages are resident

void read_stored(const format::TensorStore& store, const format::TensorInfo& info, int64_t first, at::Tensor out) {
  for (int64_t begin = 0; begin < out.numel(); begin += kPiece) {
    const int64_t count = std::min(kPiece, out.numel() - begin);
    if (out.scalar_type() == at::kFloat) {
      store.read_f32(info, first + begin, count, out.data_ptr<float>() + begin);
    } else {
      AIT_CHECK(out.scalar_type() == at::kBFloat16, "parameters are read as fp32 or bf16");
      store.read_bf16(info, first + begin, count, reinterpret_cast<uint16_t*>(out.data_ptr<at::BFloat16>()) + begin);
    }
    store.release_pages();
    // In fp64 no sum of finite numbers overflows, and one that is not finite spoils it.
    if (!std::isfinite(out.narrow(0, begin, count).sum(at::kDouble).item<double>())) {
      throw UserError("{}: {} holds numbers that are not finite (NaN or infinity): the model is broken", store.describe(),
                      info.name);
    }
  }
}

at::Tensor mean_row(const format::TensorStore& store, const format::TensorInfo& info) {
  const int64_t rows = info.shape[0], cols = info.shape[1];
  auto sum = at::zeros({cols}, at::kDouble);
  const int64_t step = std::max<int64_t>(1, kPiece / cols);
  for (int64_t row = 0; row < rows; row += step) {
    const int64_t count = std::min(step, rows - row);
    auto part = at::empty({count, cols}, at::kFloat);
    store.read_f32(info, row * cols, count * cols, part.data_ptr<float>());
    sum.add_(part.sum(0, false, at::kDouble));
  }
  return (sum / static_cast<double>(rows)).to(at::kFloat);
}

}  // namespace

ops::ParameterReader base_reader(const ModelSource& source) {
  auto tensors = source.tensors;
  return [tensors](const ops::ParamSpec& param, int64_t first, at::Tensor out) {
    const auto& info = tensors->tensors().at(param.name);
    const int64_t stored = info.elements(), last = first + out.numel();
    const int64_t from_file = std::max<int64_t>(0, std::min(last, stored) - first);
    if (from_file > 0) read_stored(*tensors, info, first, out.narrow(0, 0, from_file));
    if (from_file == out.numel()) return;
    AIT_CHECK(param.shape.size() == 2 && info.shape.size() == 2, "{} is larger than stored", param.name);
    const auto mean = mean_row(*tensors, info);
    const int64_t cols = param.shape[1];
    auto index = at::remainder(at::arange(first + from_file, last, at::kLong), cols);
    out.narrow(0, from_file, out.numel() - from_file).copy_(mean.index_select(0, index));
  };
}

ops::ParameterReader adapter_initialiser(uint64_t seed) {
  return [seed](const ops::ParamSpec& param, int64_t first, at::Tensor out) {
    if (param.name.ends_with("lora_B.weight")) {
      out.zero_();
      return;
    }
    const double bound = 1.0 / std::sqrt(static_cast<double>(param.shape[1]));
    const uint64_t key = hash64(param.name.data(), param.name.size(), seed);
    ops::kernels::uniform_fill(out, key + static_cast<uint64_t>(first), bound);
  };
}

}  // namespace aitraining::model
