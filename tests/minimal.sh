#!/usr/bin/env bash
# minimal.sh [build]: builds with the lowest version that Cargo.toml allows of each direct dependency, and runs tests
# unless it is told only to build. It works on copies of the sources in target/minimal, so it does not touch Cargo.lock.
#
# 1. `published`: both published packages, as a user gets them. It has no dev-dependencies, which may need newer versions.
# 2. `tested`: the same with all their targets, and the tests of the gate and of the election. Where the tests need a
#    newer version, all packages take that one.
#
# If cargo cannot choose the versions (no network, or an old cargo), the script prints a warning and checks nothing. With
# CI=true it fails instead. A bound that is too low always fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
work=$root/target/minimal

export CARGO_TARGET_DIR=$work/build CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

say() { echo "minimal.sh: $*" >&2; }

fail() {
	say "$*"
	exit 1
}

# Copies the sources to target/minimal/NAME, with their times, so that cargo builds only what has changed. Goes there.
copy() { # NAME
	rm -rf "${work:?}/$1"
	mkdir -p "$work/$1"
	tar -C "$root" --exclude=./target --exclude=./.git --exclude=./Cargo.lock -cf - . | tar -C "$work/$1" -xf -
	cd "$work/$1"
}

# Edits files by a sed script. The option -i is not the same everywhere.
edit() { # SCRIPT FILES
	local script=$1 file
	shift
	for file; do
		sed -E "$script" "$file" >"$file.edited"
		mv "$file.edited" "$file"
	done
}

# Makes Cargo.lock. The option is not stable, and RUSTC_BOOTSTRAP lets a stable cargo have it. It chooses the lowest
# versions of direct dependencies only: the bounds of other crates are not ours.
lock() {
	local output
	output=$(RUSTC_BOOTSTRAP=1 cargo generate-lockfile -Z direct-minimal-versions 2>&1) && return
	[[ $output != *"failed to select a version"* ]] || fail "a bound in Cargo.toml is lower than another crate allows: $output"
	[[ ${CI:-} != true ]] || fail "cannot choose the lowest versions, but CI=true needs them: $output"
	say "==== THE LOWEST VERSIONS ARE NOT TESTED. cargo cannot choose them: $output ===="
	exit 0
}

copy published
edit 's|^members = .*|members = ["crates/fake-kube-apiserver"]|; /^ *"test-support\//d' Cargo.toml
for manifest in Cargo.toml crates/fake-kube-apiserver/Cargo.toml; do
	# Each of these sections ends where the next one begins.
	awk '/^\[/ { unpublished = /dev-dependencies\]|^\[\[(bench|example|test)\]\]/ } !unpublished' "$manifest" >"$manifest.edited"
	mv "$manifest.edited" "$manifest"
done
lock
cargo check --no-default-features
cargo check --workspace --all-features

copy tested
awk '/^\[/ { dev = /dev-dependencies\]/ } dev && /^[a-z0-9_-]+ = .*"[0-9]/' Cargo.toml |
	sed -E 's/^([a-z0-9_-]+) = (\{ version = )?"([0-9.]+)".*/\1 \3/' |
	while read -r name version; do
		# A requirement for another major version stays: kube 4 beside kube 5.
		major=$(sed -E 's/^(0\.[0-9]+|[1-9][0-9]*).*/\1/' <<<"$version")
		edit "s/^($name = (\{ version = )?)\"$major(\.[0-9.]+)?\"/\1\"$version\"/" Cargo.toml crates/*/Cargo.toml
	done
lock
# Examples in packages of their own have bounds of their own, which no user of this crate gets.
cargo check --package kube-leader-gate --package fake-kube-apiserver --all-targets --all-features
[[ ${1:-} == build ]] || cargo test --all-features --lib --test gate --test suite
