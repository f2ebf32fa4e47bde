#!/usr/bin/env bash
# Configures if needed, then builds:  scripts/build.sh <preset> <build folder>
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin

preset=$1
folder=$2
torch_root=$(scripts/paths.sh torch-root)
# Ninja itself configures again when a CMake file changes; here only a first time or another LibTorch counts.
if [[ ! -f $folder/build.ninja ]] ||
    ! grep -qxF "AITRAINING_TORCH_ROOT:PATH=$torch_root" "$folder/CMakeCache.txt"; then
  cmake --preset "$preset" -DAITRAINING_TORCH_ROOT="$torch_root"
fi
ninja -C "$folder" ${JOBS:+-j "$JOBS"}
