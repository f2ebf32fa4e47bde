#pragma once
// The machine's processor and memory, as far as this process may use them.
#include <cstdint>
#include <string>

namespace aitraining::launch {

int usable_cores();    // affinity and cgroup
bool has_fast_bf16();  // AVX512_BF16 or AMX
// "MemTotal:" of /proc/meminfo and its like, in bytes; 0: not there.
uint64_t proc_bytes(const std::string& file, const std::string& key);

}  // namespace aitraining::launch
