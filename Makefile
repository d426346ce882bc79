# Commands for people. `make help` lists them; CONTRIBUTING.md says when to use which.

# CARGO_TARGET_DIR is used if it is set. In CI, built dependencies and the clients' packages are kept
# outside the clone, because the clone is removed after each run.
ifneq ($(CI),)
OUTSIDE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ombak
CARGO_TARGET_DIR ?= $(OUTSIDE)/target
OMBAK_CACHE ?= $(OUTSIDE)/packages
endif
CARGO_TARGET_DIR ?= $(CURDIR)/target
OMBAK_CACHE ?= $(CURDIR)/.cache
export CARGO_TARGET_DIR OMBAK_CACHE

STEPS ?=
FUZZ_SECONDS ?= 30
SOAK_ROUNDS ?= 10
CRASH_POINTS ?= 1000000
HISTORIES ?= 10000
MINUTES ?= 5
SEEDS ?=
BACKENDS ?=
KEYS ?= 10000000

.DEFAULT_GOAL := help
.PHONY: help run test bench bench-seeds bench-appends bench-overwrite bench-backends bench-start bench-connections fuzz soak clean-cache

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build in release and run one node in the foreground: ports 8087 and 8098, data in ./data
	cargo build --release --locked --package ombak-server
	@# The node warns of variables that are none of its own.
	exec env -u OMBAK_CACHE $(CARGO_TARGET_DIR)/release/ombak start

test: ## run everything that CI runs, or only STEPS="lint rust golden python-client ..."
	@tests/run $(STEPS)

bench: ## compare with an echo server that uses the same frames, and with Redis if installed
	cargo build --release --locked --package ombak-server --package ombak-floor
	$(CARGO_TARGET_DIR)/release/ombak-floor --ombak $(CARGO_TARGET_DIR)/release/ombak

bench-seeds: RESULTS ?= $(CARGO_TARGET_DIR)/seeds
bench-seeds: ## run benches/seeds, or only SEEDS="workers-6-pb-1kb ...", MINUTES (5) each, into RESULTS
	cargo build --release --locked --package ombak-server --package ombak-bench --package ombak-floor
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/release/ombak benches/measure.py --minutes $(MINUTES) --out $(RESULTS) $(SEEDS)

bench-appends: ## compare small puts on stores, without a network, with appends to a file
	cargo build --release --locked --package ombak-floor
	$(CARGO_TARGET_DIR)/release/ombak-floor appends

bench-overwrite: MB_LIVE ?= 100
bench-overwrite: TIMES ?= 30
bench-overwrite: ## measure bitcask's disk space while MB_LIVE (100) are overwritten TIMES (30) times
	cargo run --release --locked --package ombak-storage --example overwrite $(MB_LIVE) $(TIMES)

bench-backends: RESULTS ?= $(CARGO_TARGET_DIR)/backends
bench-backends: ## run the storage tests on each backend, or BACKENDS="test1-leveled ...", in 1 GiB, MINUTES (5) each, into RESULTS
	cargo build --release --locked --package ombak-server --package ombak-bench
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/release/ombak benches/backends.py --minutes $(MINUTES) --out $(RESULTS) $(BACKENDS)

bench-start: ## measure time and memory of a start with KEYS (10000000) keys on BACKENDS="bitcask leveled"
	cargo build --release --locked --package ombak-server --package ombak-bench
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/release/ombak benches/start.py --keys $(KEYS) $(BACKENDS)

bench-connections: ## measure resident memory with 10,000 idle connections, and with listings that their clients do not read
	cargo build --release --locked --package ombak-server
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/release/ombak benches/connections.py

fuzz: ## run every fuzz target for FUZZ_SECONDS (30); needs a nightly toolchain
	@fuzz/run $(FUZZ_SECONDS)

soak: ## run the crash tests for about an hour: CRASH_POINTS (1000000) and HISTORIES (10000) of stores, and SOAK_ROUNDS (10) times the node crashes of `make test`
	OMBAK_CRASH_POINTS=$(CRASH_POINTS) OMBAK_HISTORIES=$(HISTORIES) OMBAK_SOAK_ROUNDS=$(SOAK_ROUNDS) cargo test --release --locked --package ombak-storage --package ombak-kv --package ombak-server \
		--test metamorphic --test power_cut --test power --test kill9 -- --nocapture

clean-cache: ## remove the downloaded packages of the clients
	rm -rf $(OMBAK_CACHE)
