#pragma once
// The training library's one entry point, loaded by the torch-free executable.
extern "C" {
// `params_file`: <project>/training_params.json, written by the launching parent. The rank's identity comes from RANK,
// LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT (absent: one rank). Returns the exit code; messages
// were logged already. Never throws and never calls exit().
__attribute__((visibility("default"))) int aitraining_run_rank(const char* params_file);
// Merges an adapter into a base model (tools merge-llm-adapter).
__attribute__((visibility("default"))) int aitraining_merge_adapter(const char* base_model, const char* adapter, const char* output);
}
