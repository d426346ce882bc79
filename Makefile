# What a person types. `make help` lists it; CONTRIBUTING.md says when to use what.

# A given CARGO_TARGET_DIR is used. In CI, built dependencies and the clients' packages are kept outside the clone, which does
# not live long.
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

.DEFAULT_GOAL := help
.PHONY: help run test bench fuzz soak clean-cache

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build in release and run one node in the foreground: ports 8087 and 8098, data in ./data
	cargo build --release --locked --package ombak-server
	exec $(CARGO_TARGET_DIR)/release/ombak start

test: ## everything that CI runs; STEPS="lint rust golden python-client node-client java-client ..." picks
	@tests/run $(STEPS)

bench: ## measure against an echo server with the same frames, and Redis when it is installed
	cargo build --release --locked --package ombak-server --package ombak-floor
	$(CARGO_TARGET_DIR)/release/ombak-floor --ombak $(CARGO_TARGET_DIR)/release/ombak

fuzz: ## run every fuzz target for FUZZ_SECONDS (30); needs a nightly toolchain
	@fuzz/run $(FUZZ_SECONDS)

soak: ## kill -9 under load, SOAK_ROUNDS (10) times what `make test` does, each with a seed of its own
	cargo test --release --locked --package ombak-server --test kill9 --no-run
	@for round in $$(seq $(SOAK_ROUNDS)); do \
	    echo "=== round $$round of $(SOAK_ROUNDS)"; \
	    cargo test --release --locked --package ombak-server --test kill9 -- --nocapture || exit 1; \
	done

clean-cache: ## remove the downloaded packages of the clients
	rm -rf $(OMBAK_CACHE)
