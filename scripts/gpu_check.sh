#!/usr/bin/env bash
# Checks the CUDA path on a machine that has a GPU and PyTorch 2.11 and nothing else of this project.
#
#   scripts/gpu_check.sh --collect DIR        on the build machine: stripped copies of the executable, the training library
#                                             and the shared libraries they need that such a machine may lack
#   scripts/gpu_check.sh [--from DIR] [...]   on the GPU machine; DIR defaults to build/gpu-check. The rest goes to
#                                             gpu_check.py: --device cpu (dry run), --out FOLDER, --seconds N, --only NAME
#
# Takes under 8 minutes, downloads nothing, and ends with a table, a JSON file and exit code 0 if every check passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What every Linux machine has, and what comes with PyTorch there.
system='^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.'
torch='^lib(torch|c10|cu|nccl|nv|gomp|shm|caffe2)'

collect() {
  local folder=$1 build=${BUILD:-build} name path
  mkdir -p "$folder"
  for name in aitraining libaitraining_train.so; do
    strip --strip-unneeded -o "$folder/$name" "$build/$name"
    chmod +x "$folder/$name"
  done
  ldd "$build/aitraining" "$build/libaitraining_train.so" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | sort -u |
    while read -r name path; do
      if [[ ! $name =~ $system && ! $name =~ $torch ]]; then cp -L "$path" "$folder/$name"; fi
    done
  du -sh "$folder"
  ls -l "$folder"
}

if [[ ${1:-} == --collect ]]; then
  collect "${2:?--collect needs a folder}"
  exit
fi

from=build/gpu-check
if [[ ${1:-} == --from ]]; then
  from=${2:?--from needs a folder}
  shift 2
fi
from=$(cd "$from" && pwd)
site=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')
libraries=$from:$site/torch/lib
for folder in "$site"/nvidia/*/lib; do
  if [[ -d $folder ]]; then libraries+=:$folder; fi
done
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec python3 scripts/gpu_check.py --binary "$from/aitraining" "$@"
