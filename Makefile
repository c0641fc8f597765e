# `make help` prints what there is. The folders tests, benches, crates/proof and crates/election-sim have Makefiles of their own
# for what is rarely needed.
.PHONY: help demo cluster test check lint docs release-check neighbours features minimal package deny sidecar release

# Most tests wait for time to pass.
export RUST_TEST_THREADS ?= 6

# Rust links with cc, and what kube's TLS needs is C.
compiler = @command -v cc >/dev/null || { echo "make $@: no C compiler. Install gcc or clang, so that there is a command 'cc'." >&2; exit 1; }

help: ## Prints this
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1@\2/p' Makefile | awk -F@ '{ printf "  %-18s %s\n", $$1, $$2 }'
	@echo "More: make -C tests, make -C benches, make -C crates/proof, make -C crates/election-sim"

demo: ## Shows three replicas, of which one writes, through crashes and thefts; needs no cluster
	$(compiler)
	@echo "Building the demo: about 120 crates, a minute or two the first time. Then a show of twenty seconds."
	@cargo run --package demo --profile demo

cluster: ## Keeps a real kube-apiserver for trials until Ctrl-C
	$(compiler)
	@echo "First come a kube-apiserver and the program that starts it. To build them takes some minutes the first time."
	@SERVER_ONLY=1 tests/apiserver/assets.sh cargo run --package test-support --features election --example cluster

test: ## Runs the tests of all packages, with a real API server if Go is there
	$(compiler)
	tests/apiserver/assets.sh tests/side_by_side.sh

check: ## Judges a change, as CI does: the tests, and beside them lint and docs
	$(compiler)
	cargo fmt --all --check
	tests/apiserver/assets.sh tests/side_by_side.sh all lint docs

lint: ## Checks the format, and runs clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- --deny warnings
	cargo clippy --package kube-leader-gate --no-default-features -- --deny warnings

docs: ## Builds the documentation, and compares the public items with their lists in tests/surface
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --all-features
	tests/surface.sh

release-check: neighbours features minimal package deny ## Judges what few changes break: samples of the tools, and the targets below
	cd crates/fuzz && CUSTOM_LIBFUZZER_PATH=unused/libFuzzer.a cargo clippy --locked --target-dir ../../target/fuzz -- --deny warnings # libFuzzer itself takes long to build
	tests/platforms.sh
	$(MAKE) -C crates/proof defects-sample
	$(MAKE) -C tests mutants-sample miri-sample
	$(MAKE) -C benches counts

neighbours: ## Tests what uses the crate as others do: operators on kube 3 and 4, web servers, fencing
	cargo test --package operator-on-kube-3 --package operator-on-kube-4 --package web-servers --package fencing-example

features: target/tools/bin/cargo-hack ## Builds every combination of features
	PATH="$(CURDIR)/target/tools/bin:$$PATH" cargo hack check --workspace --ignore-private --feature-powerset --optional-deps none --skip internal

minimal: ## Builds with the lowest versions of the dependencies that Cargo.toml allows; RUN=1 runs the tests too
	tests/minimal.sh $(if $(RUN),,build)

package: ## Makes and builds what the registry would get, in the order of publication
	tests/release.sh package

deny: target/tools/bin/cargo-deny ## Checks licences, sources, banned crates, and advisories if their database is in reach
	tests/deny.sh target/tools/bin/cargo-deny

sidecar: export RUSTFLAGS = -C target-feature=+crt-static
sidecar: TARGET ?= $(shell rustc --print host-tuple)
sidecar: ## Builds the sidecar as a static program for Linux; TARGET=aarch64-unknown-linux-musl builds for that
	$(compiler)
	cargo build --locked --profile image --package kube-leader-gate-sidecar --target $(TARGET)
	mkdir -p target/sidecar
	cp target/$(TARGET)/image/kube-leader-gate-sidecar target/sidecar/

release: ## Checks that VERSION may be released, and prints what a person must still do
	tests/release.sh check "$(VERSION)"

target/tools/bin/cargo-%:
	cargo install --quiet --locked --root target/tools cargo-$*
