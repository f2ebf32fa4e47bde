#pragma once
// The training library's entry points, loaded by the torch-free executable. They never throw and never call exit();
// messages were logged already when they return an exit code.
extern "C" {
// `params_file`: <project>/training_params.json, written by the launching parent. The rank's identity comes from RANK,
// LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT (absent: one rank).
__attribute__((visibility("default"))) int aitraining_run_rank(const char* params_file);
// `request`: a JSON object {"tool": name, ...}:
//   merge-llm-adapter  base_model_path, adapter_path, output_folder
//   logits             model, input (jsonl of {"ids": [...]}), output (safetensors of "0", "1", ...: [T, vocab] fp32)
//   tokenize           model, input (jsonl of {"text"} or {"messages"}), output (jsonl of ids, trained, text)
__attribute__((visibility("default"))) int aitraining_run_tool(const char* request);
}
