#pragma once
// Safetensors files that several ranks write together, each its own byte ranges.
#include <map>
#include <memory>

#include "aitraining/checkpoint/export.h"
#include "aitraining/format/safetensors_writer.h"

namespace aitraining::checkpoint {

class RankFiles {
 public:
  struct Plan {
    std::filesystem::path path;
    std::vector<format::PlannedTensor> tensors;
  };
  // Collective: the first rank creates the files, the others join.
  RankFiles(const SavingRanks& ranks, std::vector<Plan> plans);
  // Elements [first, first + value.numel()) of a tensor, converted to its planned type.
  void write(const std::string& name, int64_t first, const at::Tensor& value);
  // Collective: syncs, then opens the files again and checks that they are whole: every byte was written once, names
  // and shapes are those planned, every number is finite. NumericError naming file and tensor otherwise.
  void finish();

 private:
  struct Place {
    format::SafetensorsWriter* writer;
    format::DType dtype;
  };
  void check_written() const;
  int64_t first_bad_tensor(const Plan& plan) const;

  SavingRanks ranks_;
  std::vector<Plan> plans_;
  std::vector<std::unique_ptr<format::SafetensorsWriter>> writers_;
  std::map<std::string, Place> places_;
};

}  // namespace aitraining::checkpoint
