# make test: the tests of the crate. make check: what CI judges. Both need cargo, and Go for the tests against a real API
# server and of the alert rules.
.PHONY: test neighbours assets check fmt clippy features minimal minimal-build counts docs package deny bench flame first-write crowd demo proof loom defects defects-sample cancellation cluster chaos freezes soak attack sim fuzz miri miri-sample mutants mutants-sample peers cost check-peers

# Most tests wait for time to pass.
export RUST_TEST_THREADS ?= 6

comma := ,

# All features, the gate alone, and the word's model check.
test:
	tests/apiserver/assets.sh tests/side_by_side.sh

# The packages that use the crate as others do: operators on kube 3 and 4, web servers, and the fencing example. And the
# names in the alert rules and in the dashboard.
neighbours:
	cargo test --package operator-on-kube-3 --package operator-on-kube-4 --package web-servers --package fencing-example \
		--package observability

# Builds the real API server, what talks with it, and promtool, into a cache outside this clone.
assets:
	tests/apiserver/assets.sh true

check: fmt clippy test neighbours defects-sample mutants-sample miri-sample counts features minimal-build docs package deny

fmt:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets --all-features -- --deny warnings
	cargo clippy --workspace --exclude web-servers --exclude fencing-example --no-default-features -- --deny warnings # these packages need the election
	cd crates/fuzz && RUSTFLAGS="--cfg fuzzing" CUSTOM_LIBFUZZER_PATH=unused/libFuzzer.a cargo clippy --locked --target-dir ../../target/fuzz -- --deny warnings # libFuzzer itself takes long to build

# Every combination of features builds.
features: target/tools/bin/cargo-hack
	PATH="$(CURDIR)/target/tools/bin:$$PATH" cargo hack check --workspace --ignore-private --feature-powerset --optional-deps none

# The lowest versions of the dependencies that Cargo.toml allows.
minimal:
	tests/minimal.sh

minimal-build:
	tests/minimal.sh build

# The instructions that the gate adds to a request are no more than they were. Needs valgrind.
counts:
	cargo run --release --package gate-cost

docs:
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --all-features

package:
	cargo package --package kube-leader-gate --package fake-kube-apiserver --allow-dirty

# The advisories too, if their database can be reached.
deny: target/tools/bin/cargo-deny
	tests/deny.sh target/tools/bin/cargo-deny

bench:
	cargo bench
	cargo bench --package gate-cost

# Where the time of an admitted write and of a handover goes, as pictures in docs/performance. Needs perf, and leave to use
# it (kernel.perf_event_paranoid).
FLAME = target/flame/write
HANDOVER = target/flame/handover
FRAMES = RUSTFLAGS="-C force-frame-pointers=yes" CARGO_PROFILE_RELEASE_DEBUG=1 CARGO_PROFILE_BENCH_DEBUG=1
flame: export PATH := $(CURDIR)/target/tools/bin:$(PATH)
flame: target/tools/bin/inferno-flamegraph
	@command -v perf >/dev/null || { echo "make flame: perf is missing; it comes with the Linux tools of your system" >&2; exit 1; }
	$(FRAMES) cargo build --release --package gate-cost --target-dir target/flame
	perf record --quiet --freq 5000 --event cpu-clock -g --output $(FLAME).data target/flame/release/gate-cost write-real-clock 5000000
	perf script --input $(FLAME).data | inferno-collapse-perf | grep -o 'gate_cost::services::send.*' > $(FLAME).folded
	mkdir -p docs/performance
	inferno-flamegraph --title "An admitted write" --countname samples --minwidth 0.5 $(FLAME).folded > docs/performance/admitted-write.svg
	$(FRAMES) cargo bench --bench handover --no-run --target-dir target/flame
	$(FRAMES) perf record --quiet --freq 5000 --event cpu-clock -g --output $(HANDOVER).data \
		cargo bench --quiet --bench handover --target-dir target/flame -- 500 graceful
	perf script --input $(HANDOVER).data | inferno-collapse-perf | grep '^tokio-rt-worker' > $(HANDOVER).folded
	inferno-flamegraph --title "Five hundred handovers, candidates and server in one process" --countname samples \
		--minwidth 0.5 $(HANDOVER).folded > docs/performance/handover-flame.svg

# From SIGTERM to the next leader's first write, of the example operator on a real API server. Each of these may be left
# out: make first-write OBJECTS=1000 ROUNDS=10 TRACE=1
first-write: export CI = true
first-write:
	tests/apiserver/assets.sh cargo bench --all-features --bench first_write

# A crowd of candidates on one lease of a real API server, which must be there. Each of these may be left out:
# make crowd SIZES=3,1000 ROUNDS=12 CRASHES=3 WATCHERS=0,1000
crowd:
	CI=true tests/apiserver/assets.sh cargo bench --bench crowd -- \
		$(or $(SIZES),3$(comma)10$(comma)100$(comma)300$(comma)1000) $(or $(ROUNDS),12) $(or $(CRASHES),3)
	CI=true tests/apiserver/assets.sh cargo bench --bench crowd -- fan-out $(WATCHERS)

demo:
	cargo run --release --example demo

# A real API server to try things on, until Ctrl-C. With COORDINATED=1 it also chooses the leaders of coordinated
# elections.
cluster:
	tests/apiserver/assets.sh cargo run --package test-support --features election --example cluster \
		$(if $(COORDINATED),-- --coordinated)

# The model of the election, further than in `make test`: every run with two faults, until ten minutes are over. Each of
# these may be left out: make proof FAULTS=2 SECONDS=25 TIME=200
proof: export PROOF_FAULTS = $(or $(FAULTS),2)
proof: export PROOF_SECONDS = $(or $(SECONDS),25)
proof: export PROOF_TIME = $(or $(TIME),200)
proof: export PROOF_STATES = 1000000000
proof:
	cargo test --release --lib candidacy::model::tests -- --nocapture --test-threads 1

# Threads that change and read one leadership, in every order, or in each order with at most so many switches.
loom:
	tests/loom.sh

# Puts each defect of src/defect.rs back, and prints which tool finds it. The model and the simulation build with other
# flags, so in a folder of their own. Each of these may be left out:
# make defects STATES=20000 SEEDS=6000 DEEP=1500000 NAMES="standing-clock takes-too-early"
defects: export STATES := $(STATES)
defects: export DEEP := $(DEEP)
defects: export SEEDS := $(SEEDS)
defects:
	tests/defects.sh $(NAMES)

# A defect for each tool: the model, the simulation and loom still find what they should.
defects-sample: export STATES = 20000
defects-sample: export SEEDS = 200
defects-sample:
	tests/defects.sh takes-too-early=model release-before-the-gate-closes=simulation old-grant-ends-a-new-one=loom

# Drops each public future at every one of its polls, not only at the first 96 and at some of the others.
cancellation:
	CANCELLATION_EACH=1000000000 cargo test --release --all-features --test suite -- cancelled

CHAOS = CI=true tests/apiserver/assets.sh cargo test --release --features fence --test chaos --

# Candidates under faults on a real API server, which must be there. Each of these may be left out:
# make chaos FAULTS=100 SEED=7 CANDIDATES=5 TIMING=15/10/2 OPTIONS="--elector client-go --kinds freeze,kill --fence"
chaos:
	$(CHAOS) faults $(if $(FAULTS),--faults $(FAULTS)) \
		$(if $(SEED),--seed $(SEED)) $(if $(CANDIDATES),--candidates $(CANDIDATES)) \
		$(if $(TIMING),--timing $(TIMING)) $(OPTIONS)

# Faults for processes that live through all of them, minutes of them on a real API server and simulated hours: what the
# processes use stays flat. Each of these may be left out:
# make soak MINUTES=10 HOURS=2 SEED=7
soak:
	SOAK_MINUTES=$$((60 * $(or $(HOURS),2))) SIM_FROM=$(SEED) \
		cargo test --release --features test-util --test sim -- --nocapture hours_of_faults
	$(CHAOS) soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

# Leaders that are frozen at random instants while they write, with each of the layers. Each of these may be left out:
# make freezes FREEZES=500 SEED=7 TIMING=2/1.2/0.3 OPTIONS="--stalls line,server --layers neither,both"
freezes:
	$(CHAOS) freezes $(if $(FREEZES),--freezes $(FREEZES)) $(if $(SEED),--seed $(SEED)) \
		$(if $(TIMING),--timing $(TIMING)) $(OPTIONS)

# Generated requests at followers, more than in `make test`. Each of these may be left out:
# make attack SEED=7 REQUESTS=5000000 LIVE=1000
attack: export ATTACK_SEED = $(SEED)
attack: export ATTACK_REQUESTS = $(or $(REQUESTS),2000000)
attack: export ATTACK_LIVE = $(or $(LIVE),400)
attack:
	CI=true tests/apiserver/assets.sh cargo test --release --all-features --test attack -- --nocapture

# Whole replicas on a simulated network, more seeds than in `make test`. Each of these may be left out:
# make sim SEEDS=20000 FROM=1000
sim: export SIM_SEEDS = $(or $(SEEDS),2000)
sim: export SIM_FROM = $(FROM)
sim:
	cargo test --release --features test-util --test sim -- --nocapture seeds_bring_no_violation

# Any bytes for what reads input from outside: libFuzzer calls the bodies of src/fuzz, one after the other. Needs nightly
# Rust. A failure leaves its input in crates/fuzz/artifacts. Each of these may be left out: make fuzz SECONDS=300 TARGETS="requests timing"
FUZZ = cargo fuzz run --fuzz-dir . --sanitizer none --target-dir ../../target/fuzz
fuzz: export PATH := $(CURDIR)/target/tools/bin:$(PATH)
fuzz: export RUSTUP_TOOLCHAIN = nightly
fuzz: target/tools/bin/cargo-fuzz
	cd crates/fuzz && $(foreach target,$(or $(TARGETS),requests leases watches timing marks candidates),$(FUZZ) $(target) -- \
		-max_total_time=$(or $(SECONDS),60) -max_len=4096 -dict=corpus/$(target).dict -timeout=10 -print_final_stats=1 &&) true

MIRI = cargo +nightly miri test --no-default-features --target-dir target/miri

# Miri interprets the tests of the leadership, the gate and the request that it can run. Each seed of the first line gives
# its threads another order. Needs the components miri and rust-src of the nightly toolchain. SEEDS may be left out:
# make miri SEEDS=100
miri:
	MIRIFLAGS=-Zmiri-many-seeds=0..$(or $(SEEDS),16) $(MIRI) --lib -- leadership::
	$(MIRI) --lib -- request:: --skip plain_path_parses --skip look_finds --skip path_is_ordinary
	$(MIRI) --features test-util --test gate -- abandoned:: closing:: deadline:: guarded:: observed::

# Two orders of the threads, if Miri is there.
miri-sample:
	@if cargo +nightly miri setup; then $(MAKE) miri SEEDS=2; else \
		echo "==== MIRI DID NOT RUN: 'cargo +nightly miri setup' FAILS. UNDEFINED BEHAVIOUR WOULD NOT BE SEEN. ====" >&2; fi

# Changes the code in one place at a time, and prints the changes that no test finds. It takes what differs from the commit
# BASE, or whole files, and with SAMPLE=n one of n changes: make mutants BASE=v0.1.0, or
# make mutants FILES='src/gate/** src/leadership/word.rs' SAMPLE=10
mutants: export PATH := $(CURDIR)/target/tools/bin:$(PATH)
mutants: export BASE ?= HEAD~1
mutants: target/tools/bin/cargo-mutants
	SAMPLE=$(SAMPLE) tests/mutants.sh $(foreach file,$(FILES),'$(file)')

# About twenty changes of what the fast tests look at.
mutants-sample:
	$(MAKE) mutants FILES='src/{request,policy,leadership,gate}/**' SAMPLE=50

PEERS = CI=true tests/apiserver/assets.sh benches/peers/run.sh

# This crate beside other leader elections on a real API server, and what each of them costs. Both write docs/PERFORMANCE.md,
# take up to half an hour, and need an otherwise idle machine. For a trial:
# make peers ROUNDS=2
# make cost MINUTES=1 OPTIONS="--no-builds --elections 100"
peers:
	$(PEERS) play $(if $(ROUNDS),--rounds $(ROUNDS))

# Checks the code of benches/peers. It takes more than a minute, so it is no part of `make check`.
check-peers:
	cd benches/peers && cargo fmt --all --check && cargo clippy --locked --workspace --all-targets -- --deny warnings
	cd benches/peers && cargo clippy --locked --package hello-kube-5 --features all -- --deny warnings && cargo test --locked --package driver
	cd benches/peers/go && GOWORK=off go vet ./...

cost:
	$(PEERS) cost $(if $(MINUTES),--minutes $(MINUTES)) $(OPTIONS)

target/tools/bin/inferno-flamegraph:
	cargo install --quiet --locked --root target/tools inferno

target/tools/bin/cargo-%:
	cargo install --quiet --locked --root target/tools cargo-$*
