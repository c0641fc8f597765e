#!/usr/bin/env bash
# side_by_side.sh: builds all tests, and runs two test programs at a time, since some of them wait for time to pass. When
# one ends, prints its whole output. Says once a minute which ones still run, ends a hung one after LIMIT seconds, and fails
# if one of them fails. The outputs stay in target/side-by-side.
#
# cargo runs one test program after the other. So here it calls this script instead of each, which writes the call down,
# with its folder and its environment.
set -euo pipefail
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/side_by_side.sh
cd "$(dirname "$script")/.."
out=$PWD/target/side-by-side
# What builds once and changes no code keeps nothing for the next build.
[[ ${CI:-} != true ]] || export CARGO_INCREMENTAL=0

# The crate, what it publishes or tests with, and its proof. `make neighbours` tests what only uses the crate.
packages=(--package kube-leader-gate --package kube-leader-gate-early-takeover --package kube-leader-gate-coordination --package kube-leader-gate-fence --package kube-leader-gate-sidecar --package fake-kube-apiserver --package test-support --package proof)

# Real servers and real time: the others, which only compute, are nice to these.
real_time=" cluster chaos attack sidecar "
# Those that take longest begin first. The rest has no order.
order=(cluster suite gate-alone chaos attack proof sim loom sidecar doc kube_leader_gate)

# Shares most dependencies with the build of all features.
gate-alone() { cargo test --package kube-leader-gate --no-default-features --features test-util; }
doc() { cargo test "${packages[@]}" --all-features --doc; }

# Writes down how cargo calls a test program. A name may come twice, as a library and as a program.
write_down() { # PROGRAM ARGUMENTS...
	local name=${1##*/}
	name=${name%-*}
	[[ ! -e $out/$name.call ]] || name=$CARGO_PKG_NAME-${1##*/}
	{
		export -p
		printf 'cd %q && exec' "$OLDPWD"
		printf ' %q' "$@"
	} >"$out/$name.call"
}

run() { # NAME
	local name=$1 call began=$SECONDS verdict=ok
	touch "$out/$name.running"
	case $name in
	gate-alone | doc) call=("$script" "$name") ;;
	*) call=(bash "$out/$name.call") ;;
	esac
	[[ $real_time == *" $name "* ]] || call=(nice "${call[@]}")
	! command -v timeout >/dev/null || call=(timeout --foreground "${LIMIT:-1200}" "${call[@]}")
	"${call[@]}" >"$out/$name.log" 2>&1 || verdict="FAILED with $?"
	until mkdir "$out/printing" 2>/dev/null; do sleep 0.1; done # one at a time
	echo "==== $name: $verdict after $((SECONDS - began)) s"
	cat "$out/$name.log"
	rmdir "$out/printing"
	rm "$out/$name.running"
	[[ $verdict == ok ]] || touch "$out/$name.failed"
}

names() { (cd "$out" && find . -name "*.$1" | sed "s|^\./||; s|\.$1\$||" | tr '\n' ' '); } # ENDING

all() {
	rm -rf "$out"
	mkdir -p "$out"
	cargo test "${packages[@]}" --all-features --no-run --tests
	# Those that tests run as processes.
	cargo build "${packages[@]}" --all-features --example fence --example minimal --example operator --bin kube-leader-gate-sidecar
	export LEADER_GATE_BUILD=${CARGO_TARGET_DIR:-$PWD/target}/debug
	cargo test --quiet "${packages[@]}" --all-features --tests --config "target.'cfg(all())'.runner = ['$script', 'write_down']"
	local rest
	rest=$(for name in $(names call); do [[ " ${order[*]} " == *" $name "* ]] || echo "$name"; done)
	# Its sleep outlives it, so it must not keep the output open.
	(while sleep 60 >/dev/null 2>&1; do echo "==== still running: $(names running)"; done) &
	minutes=$! # not local: the trap runs after the function
	trap 'kill "$minutes"' EXIT
	printf '%s\n' "${order[@]}" $rest | xargs -n 1 -P 2 "$script" run
	[[ -z $(names failed) ]] || {
		echo "==== FAILED: $(names failed)" >&2
		exit 1
	}
	echo "==== all passed"
}

"${@:-all}"
