# Commands for people. `make help` lists them; CONTRIBUTING.md says when to use which.

# CARGO_TARGET_DIR is used if it is set. In CI, built dependencies and the clients' packages are kept
# outside the clone, because the clone is removed after each run.
ifneq ($(CI),)
OUTSIDE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ombak
CARGO_TARGET_DIR ?= $(OUTSIDE)/target
OMBAK_CACHE ?= $(OUTSIDE)/packages
# Nothing is built twice there, so what a second build would need is not kept.
export CARGO_INCREMENTAL ?= 0
endif
CARGO_TARGET_DIR ?= $(CURDIR)/target
OMBAK_CACHE ?= $(CURDIR)/.cache
export CARGO_TARGET_DIR OMBAK_CACHE

STEPS ?=
FUZZ_SECONDS ?= 30
SOAK_ROUNDS ?= 10
CRASH_POINTS ?= 1000000
SIM_SEEDS ?= 5000
SIM_FIRST ?= 1
NEMESIS_SECONDS ?= 600
NEMESIS_SEED ?=
OLD ?=
UPGRADE_SECONDS ?= 60
CLUSTER ?= 3
HISTORIES ?= 10000
MINUTES ?= 5
SEEDS ?=
LUCENE_QUERIES ?= 20000
LUCENE_SEED ?=
BACKENDS ?=
KEYS ?= 10000000
N ?= 5

.DEFAULT_GOAL := help
.PHONY: help run dist devcluster devcluster-stop test bench bench-seeds bench-appends bench-overwrite bench-feed bench-sums bench-trees bench-scrub bench-anti-entropy bench-folds bench-calm bench-index-pages bench-search bench-backends bench-start bench-connections bench-thousand-connections bench-cluster bench-instructions bench-security fuzz asan soak soak-cluster soak-connections soak-lucene soak-upgrade soak-load soak-tenants clean-cache

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build and run one node in the foreground: ports 8087 and 8098, data in ./data
	@echo "This builds in a few minutes a program that is a little slower than the one of \`make dist\`, which takes twice as long."
	cargo build --release --locked --package ombak-server
	@# The node warns of variables that are none of its own.
	exec env -u OMBAK_CACHE $(CARGO_TARGET_DIR)/release/ombak start

dist: ## build the fastest program, for packages and measurements: target/dist/ombak
	cargo build --profile dist --locked --package ombak-server

devcluster: ## build, and start a cluster of N (5) nodes on this machine: ports 10017, 10018, 10027, ..., data in ./devcluster
	@cargo build --locked --package ombak-server
	@env -u OMBAK_CACHE tests/devcluster/devcluster start $(N)

devcluster-stop: ## stop that cluster; `make devcluster` continues it
	@env -u OMBAK_CACHE tests/devcluster/devcluster stop

test: ## run everything that CI runs, or only STEPS="lint rust golden python-client ..."
	@tests/run $(STEPS)

bench: ## compare with an echo server that uses the same frames, and with Redis if installed
	cargo build --profile dist --locked --package ombak-server --package ombak-floor
	$(CARGO_TARGET_DIR)/dist/ombak-floor --ombak $(CARGO_TARGET_DIR)/dist/ombak

bench-seeds: RESULTS ?= $(CARGO_TARGET_DIR)/seeds
bench-seeds: ## run benches/seeds, or only SEEDS="workers-6-pb-1kb ...", MINUTES (5) each, into RESULTS
	cargo build --profile dist --locked --package ombak-server --package ombak-bench --package ombak-floor
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/measure.py --minutes $(MINUTES) --out $(RESULTS) $(SEEDS)

bench-appends: ## compare small puts on stores, without a network, with appends to a file
	cargo build --profile dist --locked --package ombak-floor
	$(CARGO_TARGET_DIR)/dist/ombak-floor appends

bench-overwrite: MB_LIVE ?= 100
bench-overwrite: TIMES ?= 30
bench-overwrite: ## measure bitcask's disk space while MB_LIVE (100) are overwritten TIMES (30) times
	cargo run --profile dist --locked --package ombak-storage --example overwrite $(MB_LIVE) $(TIMES)

bench-feed: CHANGES ?= 1000000
bench-feed: VALUE_BYTES ?= 100
bench-feed: ORDER ?= ordered
bench-feed: ## measure how fast consumers read CHANGES (1000000) of VALUE_BYTES (100), ORDER=ordered or scattered, from the change feed
	cargo run --profile dist --locked --package ombak-storage --example change_feed $(CHANGES) $(VALUE_BYTES) $(ORDER)

bench-trees: ## measure what kept trees cost a put, in time and instructions, and a root with and without them
	cargo run --profile dist --locked --package ombak-kv --example trees_cost
	benches/sums_instructions.py --what "kept trees" --inside ns_of_a_put $(CARGO_TARGET_DIR)/dist/examples/trees_cost

bench-sums: ## measure what the sums of classes cost a put, in time and instructions, and a walk and a cut
	cargo run --profile dist --locked --package ombak-kv --example sums_cost
	benches/sums_instructions.py $(CARGO_TARGET_DIR)/dist/examples/sums_cost

bench-scrub: MB ?= 1000
bench-scrub: VALUE_BYTES ?= 1000
bench-scrub: ## measure how much scrubbing reads for each percent of a core, in MB (1000) of values of VALUE_BYTES (1000)
	cargo run --profile dist --locked --package ombak-storage --example scrub $(MB) $(VALUE_BYTES)

bench-anti-entropy: DIFFERING ?= 100
bench-anti-entropy: ## measure exchanges between three nodes with KEYS (10000000) keys: DIFFERING (100) keys that are repaired, and rounds without a difference
	cargo build --profile dist --locked --package ombak-server --package ombak-bench
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/anti_entropy.py --keys $(KEYS) --differing $(DIFFERING)

bench-calm: KEYS ?= 1000000
bench-calm: ROUNDS ?= 5
bench-calm: ## measure requests beside folds, listings, index queries, exchanges and a hand-back on three nodes with KEYS (1000000) keys in ROUNDS (5) turns
	cargo build --profile dist --locked --package ombak-server --package ombak-bench --package ombak-floor
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/calm.py --keys $(KEYS) --rounds $(ROUNDS)

bench-folds: KEYS ?= 10000000
bench-folds: ROUNDS ?= 5
bench-folds: ## measure folds over KEYS (10000000) keys of three nodes, and requests beside them in ROUNDS (5) turns
	cargo build --profile dist --locked --package ombak-server --package ombak-bench --package ombak-floor
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/folds.py --keys $(KEYS) --rounds $(ROUNDS)

bench-index-pages: ENTRIES ?= 1000000
bench-index-pages: BACKEND ?= leveled
bench-index-pages: ## measure pages of an index query over ENTRIES (1000000) entries on BACKEND (leveled), and plain queries
	cargo build --profile dist --locked --package ombak-server
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/index_pages.py --entries $(ENTRIES) --backend $(BACKEND)

bench-search: DOCUMENTS ?= 1000000
bench-search: ## measure search over DOCUMENTS (1000000) documents on three nodes
	cargo build --profile dist --locked --package ombak-server
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/search.py --documents $(DOCUMENTS)

bench-backends: RESULTS ?= $(CARGO_TARGET_DIR)/backends
bench-backends: ## run the storage tests on each backend, or BACKENDS="test1-leveled ...", in 1 GiB, MINUTES (5) each, into RESULTS
	cargo build --profile dist --locked --package ombak-server --package ombak-bench
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/backends.py --minutes $(MINUTES) --out $(RESULTS) $(BACKENDS)

bench-start: ## measure time and memory of a start with KEYS (10000000) keys on BACKENDS="bitcask leveled"
	cargo build --profile dist --locked --package ombak-server --package ombak-bench
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/start.py --keys $(KEYS) $(BACKENDS)

bench-connections: ## measure resident memory with 10,000 idle connections, and with listings that their clients do not read
	cargo build --profile dist --locked --package ombak-server
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/connections.py

bench-thousand-connections: CONNECTION_MINUTES ?= 3
bench-thousand-connections: ## run 1,000 connections for CONNECTION_MINUTES (3): errors, latencies and resident memory
	cargo build --profile dist --locked --package ombak-server --package ombak-bench
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/thousand_connections.py --minutes $(CONNECTION_MINUTES)

bench-cluster: ROUNDS ?= 5
bench-cluster: ## measure clusters: the cost of requests, a node that fails, and one that returns, in ROUNDS (5)
	cargo build --profile dist --locked --package ombak-server --package ombak-bench --package ombak-floor
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/cluster.py requests --rounds $(ROUNDS)
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/cluster.py nodes --rounds $(ROUNDS)
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/cluster_faults.py faults --rounds $(ROUNDS)
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/cluster_faults.py hand-back --rounds $(ROUNDS)
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/waiting.py --rounds $(ROUNDS)

bench-instructions: PROGRAMS ?= $(CARGO_TARGET_DIR)/dist/ombak
bench-instructions: ## count the instructions of gets and puts with callgrind, for PROGRAMS="before after"
	benches/instructions.py $(PROGRAMS)

bench-security: ROUNDS ?= 9
bench-security: ## measure what TLS, logins and permissions cost in ROUNDS (9), and instructions against the program BEFORE if given
	cargo build --profile dist --locked --package ombak-server
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak benches/security.py --rounds $(ROUNDS) $(if $(BEFORE),--before $(abspath $(BEFORE)))

fuzz: ## run every fuzz target for FUZZ_SECONDS (30); needs a nightly toolchain
	@fuzz/run $(FUZZ_SECONDS)

asan: ## run the tests of unsafe code under AddressSanitizer, in a target directory of their own
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/asan cargo test --locked --package ombak-storage \
		--target $(shell rustc --print host-tuple) --lib append_marks

soak: ## run, in hours, the crash tests: CRASH_POINTS (1000000) and HISTORIES (10000) of stores, SOAK_ROUNDS (10) times the node crashes of `make test`, and SIM_SEEDS (5000) seeds of the simulator from SIM_FIRST (1) on
	OMBAK_CRASH_POINTS=$(CRASH_POINTS) OMBAK_HISTORIES=$(HISTORIES) OMBAK_SOAK_ROUNDS=$(SOAK_ROUNDS) cargo test --release --locked --package ombak-storage --package ombak-kv --package ombak-server \
		--test all -- metamorphic:: power_cut:: power:: kill9:: --nocapture
	OMBAK_SIM_SEEDS=$(SIM_SEEDS) OMBAK_SIM_FIRST=$(SIM_FIRST) cargo test --release --locked --package ombak-sim --test all -- seeds:: --nocapture
	@$(MAKE) --no-print-directory soak-lucene
	@$(MAKE) --no-print-directory soak-connections
	@$(MAKE) --no-print-directory soak-cluster

soak-connections: ## run 1,000 connections for 32 minutes: no request may fail, and the memory may not grow
	@$(MAKE) --no-print-directory bench-thousand-connections CONNECTION_MINUTES=32

soak-lucene: ## compare search with Lucene: the recorded answers, and LUCENE_QUERIES (20000) fresh queries, with LUCENE_SEED if given
	tests/lucene/run.py --queries $(LUCENE_QUERIES) $(if $(LUCENE_SEED),--seed $(LUCENE_SEED))

soak-cluster: ## run five real nodes with faults for NEMESIS_SECONDS (600) on each backend, with NEMESIS_SEED if given, then the tests of one node on CLUSTER (3) nodes
	cargo build --profile dist --locked --package ombak-server
	@for backend in bitcask leveled leveldb; do for kind in run searched; do \
		OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak tests/nemesis/$$kind.py --seconds $(NEMESIS_SECONDS) $(if $(NEMESIS_SEED),--seed $(NEMESIS_SEED)) --backend $$backend || exit 1; done; done
	@for test in golden clients/python clients/node clients/java; do \
		OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak tests/$$test/run.py --cluster $(CLUSTER) || exit 1; done

soak-upgrade: ## upgrade five real nodes under load from the program OLD to this one, node by node, with UPGRADE_SECONDS (60) after each, on each backend, and run the scenarios of two versions
	@test -x "$(OLD)" || { echo "name the earlier program: make soak-upgrade OLD=path"; exit 2; }
	cargo build --profile dist --locked --package ombak-server
	@for backend in bitcask leveled leveldb; do \
		OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak tests/upgrade/run.py --old $(abspath $(OLD)) --seconds $(UPGRADE_SECONDS) --backend $$backend || exit 1; done
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak OMBAK_OLD_PROGRAM=$(abspath $(OLD)) tests/scenarios/run.py versions

soak-load: TIMES ?= 20
soak-load: CRATES ?= kv cluster sim
soak-load: ## run every test of CRATES="kv cluster sim" TIMES (20) times beside three busy loops, and name those that fail
	@tests/under-load/run.py --times $(TIMES) $(CRATES)

soak-tenants: ## attack a node as single clients can, and measure what the requests of others take meanwhile
	cargo build --profile dist --locked --package ombak-server
	OMBAK_PROGRAM=$(CARGO_TARGET_DIR)/dist/ombak tests/tenants/run.py --long

clean-cache: ## remove the downloaded packages of the clients
	rm -rf $(OMBAK_CACHE)
