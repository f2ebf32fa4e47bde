// Files that several ranks write: the same bytes through a shared folder, through rank 0, and from DDP.
#include <gtest/gtest.h>

#include <limits>

#include "aitraining/checkpoint/export.h"
#include "aitraining/core/files.h"
#include "support/tiny_training.h"
#include "support/weight_files.h"

namespace aitraining {
namespace {

using namespace testing;
using engine::Sharding;

struct Trained {
  std::unique_ptr<model::Decoder> decoder;
  std::unique_ptr<engine::Engine> engine;
};

Trained trained(comm::ProcessGroup& group, TinyRun run, Sharding sharding) {
  run.options.sharding = sharding;
  run.options.deterministic = true;
  Trained t;
  t.decoder = tiny_decoder(run);
  t.engine = std::make_unique<engine::Engine>(t.decoder->chain(), group, run.options);
  load_tiny(*t.engine);
  for (int64_t update = 0; update < 2; ++update) tiny_update(run, *t.decoder, *t.engine, group, update, nullptr);
  return t;
}

TEST(Saving, BytesDoNotDependOnWhoWrites) {
  const test::TempDir folder;
  for (bool lora : {false, true}) {
    for (int ranks : {2, 3}) {
      SCOPED_TRACE(::testing::Message() << "lora " << lora << " ranks " << ranks);
      TinyRun run;
      run.lora = lora;
      const auto results = run_ranks(ranks, [&](comm::ProcessGroup& group) {
        int number = 0;
        std::string expected;
        for (Sharding sharding : {Sharding::none, Sharding::gradients, Sharding::parameters}) {
          const auto t = trained(group, run, sharding);
          for (bool shared : {true, false}) {
            const auto place = folder.path() / fmt::format("{}-{}-{}", lora, ranks, number++);
            if (group.rank() == 0) std::filesystem::create_directories(place);
            group.barrier();
            AIT_REQUIRE(checkpoint::folder_is_shared(place, group));
            const checkpoint::SavingRanks saving{*t.engine, group, shared};
            if (lora) {
              checkpoint::write_adapter(saving, place, *t.decoder, "base");
              checkpoint::write_merged_weights(saving, place, *t.decoder, format::DType::bf16, tiny_weights());
            } else {
              checkpoint::write_weights(saving, place, format::DType::f32, 9000);  // several files
            }
            group.barrier();
            if (group.rank() != 0) continue;
            std::string bytes;
            std::vector<std::filesystem::path> files;
            for (const auto& entry : std::filesystem::directory_iterator(place)) files.push_back(entry.path());
            std::sort(files.begin(), files.end());
            AIT_REQUIRE(files.size() >= (lora ? 3u : 4u));
            for (const auto& file : files) bytes += file.filename().string() + read_file(file);
            if (expected.empty()) expected = bytes;
            AIT_REQUIRE(bytes == expected);
          }
        }
      });
      EXPECT_EQ(results, std::vector<int>(static_cast<size_t>(ranks), 0));
    }
  }
}

// A weight that is not finite, on any rank: no rank takes the file for saved.
TEST(Saving, BrokenWeightsAreRefusedByAllRanks) {
  const test::TempDir folder;
  for (Sharding sharding : {Sharding::none, Sharding::parameters}) {
    const auto results = run_ranks(3, [&](comm::ProcessGroup& group) {
      const auto t = trained(group, TinyRun{}, sharding);
      t.engine->load(
          [](const ops::ParamSpec& param, int64_t first, at::Tensor out) {
            tiny_weights()(param, first, out);
            const bool hit = param.name == "model.layers.1.mlp.down_proj.weight" && first == 0;
            if (hit) out[0].fill_(std::numeric_limits<double>::quiet_NaN());
          },
          [](const ops::ParamGroup&) { return true; });
      try {
        checkpoint::write_weights({*t.engine, group}, folder.path(), format::DType::f32);
      } catch (const NumericError& e) {
        AIT_REQUIRE(std::string(e.what()).find("model.layers.1.mlp.down_proj.weight") != std::string::npos);
        return;
      }
      throw std::runtime_error("broken weights were saved");
    });
    EXPECT_EQ(results, std::vector<int>(3, 0));
  }
}

}  // namespace
}  // namespace aitraining
