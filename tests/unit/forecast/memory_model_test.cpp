#include "memory_model.h"

#include <gtest/gtest.h>

#include "aitraining/core/error.h"

namespace aitraining::forecast {
namespace {

// SmolLM2-135M: the numbers of elements are those that its files have.
model::ModelConfig smollm2() {
  model::ModelConfig c;
  c.hidden_size = 576;
  c.intermediate_size = 1536;
  c.num_layers = 30;
  c.num_heads = 9;
  c.num_kv_heads = 3;
  c.head_dim = 64;
  c.vocab_size = 49152;
  c.tie_word_embeddings = true;
  return c;
}

constexpr int64_t kElements = 134515008, kAdapters = 4884480;

RunSetup setup(const std::string& engine, int ranks, bool peft = false) {
  RunSetup s;
  s.shape = shape_of(smollm2(), peft ? std::optional(Lora{16, "all-linear"}) : std::nullopt);
  s.engine = engine;
  s.ranks = ranks;
  s.peft = peft;
  s.tokens = 512;
  return s;
}

TEST(Shape, CountsEveryParameter) {
  const Shape tied = shape_of(smollm2(), std::nullopt);
  EXPECT_EQ(tied.base(), kElements);
  EXPECT_EQ(tied.largest_unit(), 49152 * 576 + 576);
  model::ModelConfig untied = smollm2();
  untied.tie_word_embeddings = false;
  EXPECT_EQ(shape_of(untied, std::nullopt).base(), kElements + 49152 * 576);
  untied.attention_bias = untied.mlp_bias = true;
  EXPECT_EQ(shape_of(untied, std::nullopt).base(),
            kElements + 49152 * 576 + 30 * (576 + 192 + 192 + 576 + 1536 + 1536 + 576));
}

TEST(Shape, CountsAdapters) {
  const Shape all = shape_of(smollm2(), Lora{16, "all-linear"});
  EXPECT_EQ(all.adapters, kAdapters);
  EXPECT_EQ(all.adapted_layers, 210);
  EXPECT_EQ(shape_of(smollm2(), Lora{8, "q_proj,v_proj"}).adapters,
            30 * 8 * ((576 + 576) + (576 + 192)));
  EXPECT_THROW(shape_of(smollm2(), Lora{8, "nothing"}), UserError);
}

TEST(MemoryModel, ClassesFollowTheFormulas) {
  RankMemory m = memory_per_rank(setup("single", 1));
  EXPECT_EQ(m.weights, 4 * kElements);
  EXPECT_EQ(m.gradients, 4 * kElements);
  EXPECT_EQ(m.optimizer, 8 * kElements);
  EXPECT_EQ(m.buffers, 0);
  m = memory_per_rank(setup("zero3", 2));
  EXPECT_EQ(m.weights, 4 * kElements / 2);
  EXPECT_EQ(m.gradients, 4 * kElements / 2);
  EXPECT_EQ(m.optimizer, 8 * kElements / 2);
  EXPECT_LE(m.buffers, 12 * (49152 * 576 + 576));
  m = memory_per_rank(setup("zero2", 2));
  EXPECT_EQ(m.weights, 4 * kElements);
  EXPECT_EQ(m.gradients, 4 * kElements / 2);
  m = memory_per_rank(setup("zero3", 4, true));
  EXPECT_EQ(m.weights, 4 * kElements / 4 + 4 * kAdapters);
  EXPECT_EQ(m.optimizer, 8 * kAdapters);
}

TEST(MemoryModel, BfloatKeepsMastersBesideWhatComputes) {
  RunSetup s = setup("ddp", 2);
  s.bf16 = true;
  RankMemory m = memory_per_rank(s);
  EXPECT_EQ(m.weights + m.gradients + m.optimizer, 18 * kElements);
  s = setup("ddp", 2, true);
  s.bf16 = true;
  m = memory_per_rank(s);
  EXPECT_EQ(m.weights, 2 * kElements + 6 * kAdapters);
  s = setup("zero2", 2);
  s.bf16 = true;
  EXPECT_EQ(memory_per_rank(s).weights, 2 * kElements + 4 * kElements / 2);
}

TEST(MemoryModel, OtherTermsGrowWithWhatTheyDependOn) {
  RunSetup s = setup("single", 1);
  const RankMemory with = memory_per_rank(s);
  s.recompute = false;
  EXPECT_GT(memory_per_rank(s).activations, 4 * with.activations);
  s = setup("single", 1);
  s.tokens = 1024;
  EXPECT_EQ(memory_per_rank(s).activations, 2 * with.activations);
  EXPECT_EQ(memory_per_rank(s).logits, with.logits);  // a chunk is full already
  s.adamw = false;
  EXPECT_EQ(memory_per_rank(s).optimizer, 0);
  s = setup("zero3", 2);
  s.cuda = s.offload_optimizer = true;
  EXPECT_EQ(memory_per_rank(s).optimizer, 0);
  EXPECT_EQ(memory_per_rank(s).weights, 4 * kElements / 2);
  s.offload_param = true;
  EXPECT_EQ(memory_per_rank(s).weights, 0);
  s = setup("zero3", 2);
  const int64_t none = memory_per_rank(s).buffers;
  s.resident_units = 3;
  EXPECT_EQ(memory_per_rank(s).buffers - none, 4 * (49152 * 576 + 576 + 2 * s.shape.block));
}

TEST(Traffic, BytesOfAnUpdate) {
  EXPECT_EQ(traffic_per_update(setup("single", 1)), 0);
  RunSetup s = setup("ddp", 2);
  s.accumulation = 4;
  EXPECT_EQ(traffic_per_update(s), 4 * kElements);  // 2 N elements, half of them each rank's
  s.engine = "zero2";
  EXPECT_EQ(traffic_per_update(s), 4 * 4 * kElements / 2 + 4 * kElements / 2);
  s = setup("zero3", 2);
  const Shape& m = s.shape;
  EXPECT_EQ(traffic_per_update(s), 4 * (kElements + m.embedding + 29 * m.block + kElements) / 2);
  EXPECT_EQ(traffic_per_update(setup("ddp", 2, true)), 4 * kAdapters);
}

}  // namespace
}  // namespace aitraining::forecast
