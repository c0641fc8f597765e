# make test: every test there is. make check: what CI judges. Both need cargo, and Go for the tests against a real API
# server and of the alert rules.
.PHONY: test assets check fmt clippy features minimal minimal-build docs package deny bench crowd demo cluster chaos freezes attack

# Most tests wait for time to pass.
export RUST_TEST_THREADS ?= 6

comma := ,

# The word's model check builds with other flags, so in a folder of its own.
LOOM = RUSTFLAGS="--cfg leader_gate_loom" cargo test --no-default-features --lib --target-dir target/loom

test:
	tests/apiserver/assets.sh cargo test --workspace --all-features
	cargo test --no-default-features --features test-util
	$(LOOM) loom

# Builds the real API server, what talks with it, and promtool, into a cache outside this clone.
assets:
	tests/apiserver/assets.sh true

check: fmt clippy test features minimal-build docs package deny

fmt:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets --all-features -- --deny warnings
	cargo clippy --workspace --exclude web-servers --exclude fencing-example --no-default-features -- --deny warnings # these packages need the election

# Every combination of features builds.
features: target/tools/bin/cargo-hack
	PATH="$(CURDIR)/target/tools/bin:$$PATH" cargo hack check --workspace --ignore-private --feature-powerset --optional-deps none

# The lowest versions of the dependencies that Cargo.toml allows.
minimal:
	tests/minimal.sh

minimal-build:
	tests/minimal.sh build

docs:
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --all-features

package:
	cargo package --package kube-leader-gate --package fake-kube-apiserver --allow-dirty

deny: target/tools/bin/cargo-deny
	target/tools/bin/cargo-deny check bans licenses sources

bench:
	cargo bench

# A crowd of candidates on one lease of a real API server, which must be there. Each of these may be left out:
# make crowd SIZES=3,1000 ROUNDS=12 CRASHES=3
crowd:
	CI=true tests/apiserver/assets.sh cargo bench --bench crowd -- \
		$(or $(SIZES),3$(comma)10$(comma)100$(comma)300$(comma)1000) $(or $(ROUNDS),12) $(or $(CRASHES),3)
	CI=true tests/apiserver/assets.sh cargo bench --bench crowd -- fan-out

demo:
	cargo run --release --example demo

# A real API server to try things on, until Ctrl-C. With COORDINATED=1 it also chooses the leaders of coordinated
# elections.
cluster:
	tests/apiserver/assets.sh cargo run --package test-support --features election --example cluster \
		$(if $(COORDINATED),-- --coordinated)

CHAOS = CI=true tests/apiserver/assets.sh cargo test --release --features fence --test chaos --

# Candidates under faults on a real API server, which must be there. Each of these may be left out:
# make chaos FAULTS=100 SEED=7 CANDIDATES=5 TIMING=15/10/2 OPTIONS="--elector client-go --kinds freeze,kill --fence"
chaos:
	$(CHAOS) faults $(if $(FAULTS),--faults $(FAULTS)) \
		$(if $(SEED),--seed $(SEED)) $(if $(CANDIDATES),--candidates $(CANDIDATES)) \
		$(if $(TIMING),--timing $(TIMING)) $(OPTIONS)

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

target/tools/bin/cargo-%:
	cargo install --quiet --locked --root target/tools cargo-$*
