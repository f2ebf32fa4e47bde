#!/usr/bin/env bash
# Runs every test of a build folder; the last line is "N passed, N failed":  scripts/run_tests.sh <build folder>
# Everything after the folder goes to pytest, for example -k columns.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=$(cd "$1" && pwd)
shift
results=$build/test-results
python=$(scripts/paths.sh test-python) || exit 1
AITRAINING_BIN=${AITRAINING_BIN:-$build/aitraining}
AITRAINING_SMOLLM2=${AITRAINING_SMOLLM2:-$(scripts/paths.sh model)} || exit 1
export AITRAINING_BIN AITRAINING_SMOLLM2
rm -rf "$results" && mkdir -p "$results"

ctest --test-dir "$build" --output-on-failure --parallel "$(nproc)" --timeout 300 --no-tests=error \
  --output-junit "$results/ctest.xml"
ctest_status=$?
"$python" -m pytest --junitxml="$results/pytest.xml" "$@"
pytest_status=$?

"$python" scripts/count_tests.py --tests tests --ctest "$results/ctest.xml" --pytest "$results/pytest.xml" \
  --status "$ctest_status" "$pytest_status" | tee "$results/summary.txt"
exit "${PIPESTATUS[0]}"
