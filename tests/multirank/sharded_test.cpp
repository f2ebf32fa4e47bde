// ZeRO-2 and ZeRO-3 beside DDP: the same numbers, bit for bit where the sums are taken in the same order.
#include <gtest/gtest.h>

#include "support/tiny_training.h"

namespace aitraining {
namespace {

using namespace testing;
using engine::Sharding;

constexpr Sharding kShardings[] = {Sharding::none, Sharding::gradients, Sharding::parameters};

TinyRun with(TinyRun run, Sharding sharding) {
  run.options.sharding = sharding;
  return run;
}

void expect_all_zero(const std::vector<int>& results) {
  EXPECT_EQ(results, std::vector<int>(results.size(), 0));
}

struct Strict {
  int ranks;
  bool lora, recompute;
  int64_t micro_batches;
};

class StrictMode : public ::testing::TestWithParam<std::tuple<int, bool, bool, int64_t>> {};

TEST_P(StrictMode, EnginesAgreeBitForBit) {
  const auto [ranks, lora, recompute, micro_batches] = GetParam();
  TinyRun run;
  run.lora = lora;
  run.updates = 12;
  run.micro_batches = micro_batches;
  run.rows_per_update = 16;
  run.options.recompute = recompute;
  run.options.deterministic = true;
  expect_all_zero(run_ranks(ranks, [&](comm::ProcessGroup& group) {
    const auto ddp = train_tiny(group, run);
    for (Sharding sharding : {Sharding::gradients, Sharding::parameters}) {
      const auto sharded = train_tiny(group, with(run, sharding));
      AIT_REQUIRE(sharded.losses == ddp.losses);
      AIT_REQUIRE(sharded.norms == ddp.norms);
      AIT_REQUIRE(equal_bits(sharded.weights, ddp.weights));
      AIT_REQUIRE(equal_bits(sharded.exp_avg, ddp.exp_avg));
      AIT_REQUIRE(equal_bits(sharded.exp_avg_sq, ddp.exp_avg_sq));
    }
    auto alone_group = comm::make_process_group({});
    const auto alone = train_tiny(*alone_group, run);
    AIT_REQUIRE(close(ddp.losses, alone.losses, 1e-6));
  }));
}

INSTANTIATE_TEST_SUITE_P(Sharded, StrictMode,
                         ::testing::Combine(::testing::Values(2, 4), ::testing::Bool(), ::testing::Bool(),
                                            ::testing::Values(1, 4)));

struct Shape {
  const char* name;
  model::ModelConfig config;
};

// What nobody thinks of first: a unit bigger than all others together, one layer, fewer parameters than ranks times
// the alignment, sizes that nothing divides, an untied head.
std::vector<Shape> odd_shapes() {
  auto big_embedding = tiny_config(false);
  big_embedding.vocab_size = 4001;
  auto big_block = tiny_config(true);
  big_block.num_layers = 1;
  big_block.intermediate_size = 4096;
  auto one_layer = tiny_config(true);
  one_layer.num_layers = 1;
  auto minute = tiny_config(true);
  minute.num_layers = 1;
  minute.hidden_size = 2;
  minute.intermediate_size = 3;
  minute.num_heads = minute.num_kv_heads = 1;
  minute.head_dim = 2;
  minute.vocab_size = 7;
  auto odd = tiny_config(false);
  odd.hidden_size = 35;
  odd.intermediate_size = 51;
  odd.num_heads = 5;
  odd.num_kv_heads = 1;
  odd.head_dim = 6;
  odd.vocab_size = 37;
  return {{"big embedding", big_embedding}, {"big block", big_block}, {"one layer", one_layer}, {"minute", minute},
          {"odd", odd}};
}

class OddShapes : public ::testing::TestWithParam<int> {};

TEST_P(OddShapes, EnginesAgree) {
  for (const auto& shape : odd_shapes()) {
    SCOPED_TRACE(shape.name);
    TinyRun run;
    run.config = shape.config;
    run.updates = 4;
    run.micro_batches = 2;
    run.options.deterministic = true;
    expect_all_zero(run_ranks(GetParam(), [&](comm::ProcessGroup& group) {
      const auto ddp = train_tiny(group, run);
      for (Sharding sharding : {Sharding::gradients, Sharding::parameters}) {
        const auto sharded = train_tiny(group, with(run, sharding));
        AIT_REQUIRE(sharded.losses == ddp.losses);
        AIT_REQUIRE(equal_bits(sharded.weights, ddp.weights));
      }
    }));
  }
}

INSTANTIATE_TEST_SUITE_P(Sharded, OddShapes, ::testing::Values(2, 3, 4));

// Without strict mode, in bf16, with units that stay, with host copies: the same run up to rounding.
TEST(Sharded, VariantsAreTheSameRun) {
  struct Variant {
    const char* name;
    void (*change)(engine::EngineOptions&);
    bool same_bits;  // as plain ZeRO-3
  };
  const Variant variants[] = {
      {"plain", [](engine::EngineOptions&) {}, true},
      {"kept activations", [](engine::EngineOptions& o) { o.recompute = false; }, true},
      {"one resident unit", [](engine::EngineOptions& o) { o.resident_units = 1; }, true},
      {"all units resident", [](engine::EngineOptions& o) { o.resident_units = 100; }, true},
      {"optimizer in host memory", [](engine::EngineOptions& o) { o.offload_optimizer = true; }, true},
      {"parameters in host memory", [](engine::EngineOptions& o) { o.offload_param = true; }, true},
      {"both", [](engine::EngineOptions& o) { o.offload_param = o.offload_optimizer = true; }, true},
  };
  for (bool lora : {false, true}) {
    for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      expect_all_zero(run_ranks(2, [&](comm::ProcessGroup& group) {
        TinyRun run;
        run.lora = lora;
        run.updates = 6;
        run.micro_batches = 2;
        run.options.compute = compute;
        const auto ddp = train_tiny(group, run);
        const auto plain = train_tiny(group, with(run, Sharding::parameters));
        const double tolerance = compute == at::kFloat ? 1e-6 : 2e-2;
        AIT_REQUIRE(close(plain.losses, ddp.losses, tolerance));
        for (const auto& variant : variants) {
          auto changed = with(run, Sharding::parameters);
          variant.change(changed.options);
          const auto outcome = train_tiny(group, changed);
          if (outcome.losses == plain.losses && equal_bits(outcome.weights, plain.weights)) continue;
          throw std::runtime_error(std::string("other numbers with: ") + variant.name);
        }
        auto zero2 = with(run, Sharding::gradients);
        const auto whole = train_tiny(group, zero2);
        AIT_REQUIRE(close(whole.losses, ddp.losses, tolerance));
        zero2.options.offload_optimizer = true;
        const auto offloaded = train_tiny(group, zero2);
        AIT_REQUIRE(offloaded.losses == whole.losses && equal_bits(offloaded.weights, whole.weights));
      }));
    }
  }
}

// More ranks than rows: a rank without rows takes part in every collective and adds nothing.
TEST(Sharded, RanksWithoutRows) {
  TinyRun run;
  run.rows_per_update = 3;
  run.micro_batches = 2;
  run.updates = 4;
  for (Sharding sharding : kShardings) {
    expect_all_zero(run_ranks(4, [&](comm::ProcessGroup& group) {
      const auto outcome = train_tiny(group, with(run, sharding));
      auto alone_group = comm::make_process_group({});
      AIT_REQUIRE(close(outcome.losses, train_tiny(*alone_group, run).losses, 1e-6));
    }));
  }
}

// A gradient that is not finite on one rank: no rank steps, and the run goes on.
TEST(Sharded, NonFiniteGradientsAreSkippedByAllRanks) {
  for (Sharding sharding : kShardings) {
    expect_all_zero(run_ranks(3, [&](comm::ProcessGroup& group) {
      const auto run = with(TinyRun{}, sharding);
      const auto decoder = tiny_decoder(run);
      engine::Engine engine(decoder->chain(), group, run.options);
      load_tiny(engine);
      const double before = tiny_update(run, *decoder, engine, group, 0, nullptr);
      engine.begin_update();
      auto batch = tiny_batch(*decoder, {group.rank()}, 10);
      if (group.rank() == 1) batch.loss_scale = std::numeric_limits<double>::infinity();
      engine.micro_step(&batch, true);
      AIT_REQUIRE(engine.finish_update(1e-3).skipped);
      AIT_REQUIRE(engine.updates_done() == 1);
      const double after = tiny_update(run, *decoder, engine, group, 0, nullptr);
      AIT_REQUIRE(std::isfinite(after) && after < before);
    }));
  }
}

TEST(Sharded, EvaluationIsThatOfOneRank) {
  expect_all_zero(run_ranks(3, [&](comm::ProcessGroup& group) {
    const auto run = with(TinyRun{}, Sharding::parameters);
    const auto decoder = tiny_decoder(run);
    engine::Engine engine(decoder->chain(), group, run.options);
    load_tiny(engine);
    auto alone_group = comm::make_process_group({});
    const auto alone_decoder = tiny_decoder({});
    engine::Engine alone(alone_decoder->chain(), *alone_group, {});
    load_tiny(alone);
    const auto batch = tiny_batch(*decoder, {5, 6}, 1);
    // Only rank 0 has rows.
    const double loss = engine.evaluate(group.rank() == 0 ? &batch : nullptr);
    AIT_REQUIRE(loss == (group.rank() == 0 ? alone.evaluate(&batch) : 0));
    AIT_REQUIRE(at::equal(engine.hidden_states(batch), alone.hidden_states(batch)));
  }));
}

// Each rank holds its part and nothing more: what S8 asks for.
TEST(Sharded, EachRankOwnsOnePart) {
  expect_all_zero(run_ranks(4, [&](comm::ProcessGroup& group) {
    const auto run = with(TinyRun{}, Sharding::parameters);
    const auto decoder = tiny_decoder(run);
    engine::Engine engine(decoder->chain(), group, run.options);
    load_tiny(engine);
    int64_t owned = 0;
    for (const auto& range : engine.owned_state()) owned += range.count;
    const auto groups = static_cast<int64_t>(decoder->chain().groups.size());
    AIT_REQUIRE(owned <= decoder->parameters() / 4 + groups * 32);
    AIT_REQUIRE(group.sum({static_cast<double>(owned)})[0] == static_cast<double>(decoder->parameters()));
  }));
}

}  // namespace
}  // namespace aitraining
