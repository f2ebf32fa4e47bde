// What travels between the ranks, how much of it, and in which order relative to the computation.
#include <gtest/gtest.h>

#include "support/tiny_training.h"

namespace aitraining {
namespace {

using namespace testing;
using engine::Sharding;

using Events = std::vector<std::string>;

// Passes every collective on and notes its start.
class RecordingGroup : public comm::ProcessGroup {
 public:
  RecordingGroup(comm::ProcessGroup& inner, Events& events)
      : ProcessGroup(inner.rank(), inner.size(), at::kCPU), inner_(inner), events_(events) {}
  std::unique_ptr<comm::Work> all_reduce_sum_async(at::Tensor tensor) override {
    return inner_.all_reduce_sum_async(std::move(tensor));
  }
  void all_reduce_max(at::Tensor tensor) override { inner_.all_reduce_max(std::move(tensor)); }
  void broadcast(at::Tensor tensor, int root) override { inner_.broadcast(std::move(tensor), root); }
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override { return inner_.all_gather(tensor); }
  void barrier() override { inner_.barrier(); }
  std::unique_ptr<comm::Work> all_gather_into_async(at::Tensor out, at::Tensor part) override {
    events_.push_back("gather");
    return inner_.all_gather_into_async(std::move(out), std::move(part));
  }
  std::unique_ptr<comm::Work> reduce_scatter_sum_async(ReduceScatter request) override {
    events_.push_back("reduce");
    return inner_.reduce_scatter_sum_async(std::move(request));
  }
  int64_t reduce_scatter_space(int64_t n, bool ordered) const override {
    return inner_.reduce_scatter_space(n, ordered);
  }
  void send_receive(at::Tensor out, int to, at::Tensor in, int from, std::chrono::milliseconds patience) override {
    inner_.send_receive(std::move(out), to, std::move(in), from, patience);
  }

 private:
  comm::ProcessGroup& inner_;
  Events& events_;
};

// A unit that notes when it computes.
class RecordingUnit : public ops::Unit {
 public:
  RecordingUnit(std::unique_ptr<ops::Unit> inner, Events& events)
      : Unit(inner->name(), inner->groups()), inner_(std::move(inner)), events_(events) {}
  ops::Bundle forward(const ops::Bundle& in, const ops::Batch& batch) const override {
    events_.push_back("compute " + name());
    return inner_->forward(in, batch);
  }
  bool backward_needs_weights() const override { return inner_->backward_needs_weights(); }

 private:
  std::unique_ptr<ops::Unit> inner_;
  Events& events_;
};

model::ModelConfig three_blocks() {
  auto config = tiny_config(false);
  config.num_layers = 3;
  return config;
}

TEST(Schedule, NextUnitIsGatheredBeforeTheCurrentOneComputes) {
  EXPECT_EQ(run_ranks(2, [](comm::ProcessGroup& group) {
    Events events;
    RecordingGroup recording(group, events);
    TinyRun run;
    run.config = three_blocks();
    run.options.sharding = Sharding::parameters;
    const auto decoder = tiny_decoder(run);
    for (auto& unit : decoder->chain().units) unit = std::make_unique<RecordingUnit>(std::move(unit), events);
    engine::Engine engine(decoder->chain(), recording, run.options);
    load_tiny(engine);
    tiny_update(run, *decoder, engine, recording, 0, nullptr);
    const Events expected = {
        // Forward: one unit ahead. The last block stays for its backward pass.
        "gather", "gather", "compute embedding", "gather", "compute layers.0", "gather", "compute layers.1", "gather",
        "compute layers.2", "compute head",
        // Backward: the head's gradients are there; each block is computed again, the one below on its way.
        "reduce", "gather", "compute layers.2", "reduce", "gather", "compute layers.1", "reduce", "compute layers.0",
        "reduce", "reduce"};
    if (events == expected) return;
    std::string text;
    for (const auto& event : events) text += event + ", ";
    throw std::runtime_error("another order: " + text);
  }), (std::vector<int>{0, 0}));
}

struct Expected {
  uint64_t gathers = 0, gathered = 0, reductions = 0, reduced = 0;
};

// ZeRO-3 for L blocks and m micro-batches: forward gathers every unit's groups once, backward gathers blocks L-2..0
// again, and each trained group is reduced once. Elements are those of the padded flats.
Expected formula(const ops::Chain& chain, int ranks, int64_t micro_batches) {
  auto padded = [&](const ops::ParamGroup& g) {
    const int64_t part = (g.numel() + ranks - 1) / ranks;
    return static_cast<uint64_t>((part + 31) / 32 * 32 * ranks);
  };
  Expected e;
  for (size_t u = 0; u < chain.units.size(); ++u) {
    const bool again = u > 0 && u + 2 < chain.units.size();
    for (const auto* g : chain.units[u]->groups()) {
      if (g->whole()) continue;
      e.gathers += again ? 2 : 1;
      e.gathered += (again ? 2 : 1) * padded(*g);
    }
  }
  for (const auto& g : chain.groups) {
    if (!g->trainable() || g->whole()) continue;
    e.reductions += 1;
    e.reduced += padded(*g);
  }
  const auto m = static_cast<uint64_t>(micro_batches);
  return {m * e.gathers, m * e.gathered, m * e.reductions, m * e.reduced};
}

class Traffic : public ::testing::TestWithParam<std::tuple<int, bool, bool>> {};

TEST_P(Traffic, IsWhatTheFormulaSays) {
  const auto [ranks, tied, lora] = GetParam();
  const auto results = run_ranks(ranks, [tied = tied, lora = lora](comm::ProcessGroup& group) {
    TinyRun run;
    run.config = three_blocks();
    run.config.tie_word_embeddings = tied;
    run.lora = lora;
    run.micro_batches = 3;
    for (Sharding sharding : {Sharding::none, Sharding::gradients, Sharding::parameters}) {
      run.options.sharding = sharding;
      const auto decoder = tiny_decoder(run);
      engine::Engine engine(decoder->chain(), group, run.options);
      load_tiny(engine);
      const auto before = group.traffic();
      tiny_update(run, *decoder, engine, group, 0, nullptr);
      const auto after = group.traffic();
      const auto zero3 = formula(decoder->chain(), group.size(), run.micro_batches);
      const bool zero = sharding != Sharding::none;
      auto gathers = zero3.gathers, gathered = zero3.gathered;
      if (sharding == Sharding::none) gathers = gathered = 0;
      if (sharding == Sharding::gradients) {
        // Changed parameters travel once an update.
        gathers = zero3.reductions / 3;
        gathered = zero3.reduced / 3;
      }
      AIT_REQUIRE(after.all_gathers - before.all_gathers == gathers);
      AIT_REQUIRE(after.gathered - before.gathered == gathered);
      AIT_REQUIRE(after.reduce_scatters - before.reduce_scatters == (zero ? zero3.reductions : 0));
      AIT_REQUIRE(after.reduced - before.reduced == (zero ? zero3.reduced : 0));
      // DDP reduces each trained group once an update; with adapters every engine reduces theirs. The norm of sharded
      // gradients and the test's own loss are one small sum each.
      uint64_t trained = 0;
      for (const auto& g : decoder->chain().groups) trained += g->trainable() && (!zero || g->whole()) ? 1 : 0;
      AIT_REQUIRE(after.all_reduces - before.all_reduces == trained + (zero ? 2 : 1));
    }
  });
  EXPECT_EQ(results, std::vector<int>(static_cast<size_t>(ranks), 0));
}

INSTANTIATE_TEST_SUITE_P(Schedule, Traffic,
                         ::testing::Combine(::testing::Values(2, 3), ::testing::Bool(), ::testing::Bool()));

// Units that stay are gathered once an update, however many micro-batches it has.
TEST(Schedule, ResidentUnitsAreGatheredOnce) {
  EXPECT_EQ(run_ranks(2, [](comm::ProcessGroup& group) {
    TinyRun run;
    run.config = three_blocks();
    run.micro_batches = 4;
    run.options.sharding = Sharding::parameters;
    run.options.resident_units = 100;
    const auto decoder = tiny_decoder(run);
    engine::Engine engine(decoder->chain(), group, run.options);
    load_tiny(engine);
    for (int64_t update = 0; update < 2; ++update) {
      const auto before = group.traffic().all_gathers;
      tiny_update(run, *decoder, engine, group, update, nullptr);
      AIT_REQUIRE(group.traffic().all_gathers - before == decoder->chain().groups.size());
    }
  }), (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace aitraining
