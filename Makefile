# The short way to everything; docs/building.md tells what each step does and which variables there are.
PRESET ?= release
BUILD := $(if $(filter release,$(PRESET)),build,build-$(PRESET))
QUICKSTART_OUT := quickstart-model
# Expanded in recipes only, that is after set-up.
MODEL = $(shell scripts/paths.sh model)
TEST_PYTHON = $(shell scripts/paths.sh test-python)

.PHONY: all build quickstart test bench clean help setup setup-model setup-test
.DEFAULT_GOAL := all

all: build ## build build/aitraining (the default)

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "make PRESET=debug ... uses another preset of CMakePresets.json, in build-debug"

setup:
	@scripts/setup.sh build

setup-model: setup
	@scripts/setup.sh model

setup-test: setup
	@scripts/setup.sh model test

build: setup
	@scripts/build.sh $(PRESET) $(BUILD)

quickstart: build setup-model ## fine-tune a small language model on a few chats, in minutes on a CPU
	rm -rf $(QUICKSTART_OUT)
	$(BUILD)/aitraining --config configs/quickstart/quickstart.yaml --model $(MODEL) --project-name $(QUICKSTART_OUT)

test: build setup-test ## run every test; the last line counts them
	@scripts/run_tests.sh $(BUILD)

bench: build setup-test ## measure speed and memory beside TRL (BENCH_FLAGS=--quick for a short run)
	$(TEST_PYTHON) bench/compare_trl.py --gguf $(MODEL) --binary $(BUILD)/aitraining $(BENCH_FLAGS)

clean: ## remove the build folders and the quickstart's model; installed packages stay
	rm -rf build build-debug build-asan $(QUICKSTART_OUT)
