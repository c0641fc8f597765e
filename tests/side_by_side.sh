#!/usr/bin/env bash
# side_by_side.sh [all TARGET...]: builds and runs the unit tests, then all others, two test programs at a time, since some
# of them wait for time to pass. When one ends, prints its whole output. Says once a minute which ones still run, and ends a
# hung one after LIMIT seconds. The outputs stay in target/side-by-side. Beside the test programs run the TARGETs of the
# Makefile and the tests of the documentation, one at a time, since each of them waits for cargo's lock.
#
# At the end it tries each failed test again, alone, twice at most. If the test passes then, the script prints FLAKY with
# the first failure, and does not fail for it. It tries no test again whose failure is a finding (see `is_finding`).
#
# cargo runs one test program after the other. So here it calls this script instead of each, which writes the call down,
# with its folder and its environment.
set -euo pipefail
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/side_by_side.sh
cd "$(dirname "$script")/.."
out=${SIDE_BY_SIDE:-$PWD/target/side-by-side} # what a test of this script replaces
# What builds once and changes no code keeps nothing for the next build.
[[ ${CI:-} != true ]] || export CARGO_INCREMENTAL=0

# The crate, what it publishes or tests with, its dashboards, and its proof. `make neighbours` tests what only uses the crate.
packages=(--package kube-leader-gate --package kube-leader-gate-early-takeover --package kube-leader-gate-fence --package kube-leader-gate-sidecar --package fake-kube-apiserver --package test-support --package observability --package examples --package election-sim --package proof)

# Real servers and real time: the others, which only compute, are nice to these.
real_time=" cluster chaos attack sidecar "
# Those that take longest begin first. The rest has no order.
order=(cluster suite sim sidecar chaos attack gate-alone-gate loom)

doc() {
	local code=0
	cargo test "${packages[@]}" --all-features --doc --no-fail-fast "$@" || code=$?
	cargo test --package kube-leader-gate --no-default-features --features test-util --doc --no-fail-fast "$@" || code=$?
	return $code
}

# What they print is a finding, whatever the machine does: they play seeds, every order of steps, or requests by chance.
findings=" sim election_sim proof loom attack "
# More failed tests than this are more than chance.
most=5

# Writes down how cargo calls a test program. A name may come twice, as a library and as a program.
write_down() { # PROGRAM ARGUMENTS...
	local name=${1##*/}
	name=${CALLED:-}${name%-*}
	[[ ! -e $out/$name.call ]] || name=$CARGO_PKG_NAME-${1##*/}
	{
		export -p
		printf 'cd %q && exec' "$OLDPWD"
		printf ' %q' "$@"
		echo ' "$@"'
	} >"$out/$name.call"
}

call() { # NAME ARGUMENTS...
	local name=$1 call
	case $name in
	doc) call=("$script" doc ${2:+-- "${@:2}"}) ;;
	make-*) call=(make "${name#make-}") ;;
	*) call=(bash "$out/$name.call" "${@:2}") ;;
	esac
	[[ $real_time == *" $name "* ]] || call=(nice "${call[@]}")
	! command -v timeout >/dev/null || call=(timeout --foreground "${LIMIT:-2400}" "${call[@]}")
	"${call[@]}"
}

run() { # NAME
	local name=$1 began=$SECONDS verdict=ok
	touch "$out/$name.running"
	call "$name" >"$out/$name.log" 2>&1 || verdict="FAILED with $?"
	until mkdir "$out/printing" 2>/dev/null; do sleep 0.1; done # one at a time
	echo "==== $name: $verdict after $((SECONDS - began)) s"
	cat "$out/$name.log"
	rmdir "$out/printing"
	rm "$out/$name.running"
	[[ $verdict == ok ]] || touch "$out/$name.failed"
}

# Prints the names of the failed tests of a log. A program that crashes or hangs names none.
failed_tests() { # LOG
	awk '/^failures:$/ { n = 0; listed = 1; next }
		/^test result: / { for (i = 0; i < n; i++) print names[i]; n = listed = 0; next }
		listed && /^    [^ ]/ { names[n++] = substr($0, 5) }' "$1"
}

# Prints the first lines of what a log says of one failed test.
failure_of() { # TEST LOG
	awk -v head="---- $1 " '/^(---- |failures:$)/ { told = index($0, head) == 1 } told && lines++ < 30' "$2"
}

# Whether chance cannot explain the failure: a judge of a log says SAFETY, proptest prints the input that it found, or a
# process crashed.
is_finding() { # NAME LOG
	[[ $findings == *" $1 "* ]] || grep -qE 'SAFETY: |minimal failing input|\(signal: ' "$2"
}

# Tries one failed test again, alone. Returns 0 if it passes at the second or third try.
passes_alone() { # NAME TEST
	local try log=$out/$1.again
	for try in 2 3; do
		if call "$1" --exact "$2" >"$log" 2>&1 && grep -q '^test result: ok. 1 passed' "$log"; then
			echo "==== FLAKY: $2 of $1 failed, and passed alone at try $try. The first failure:" >>"$out/flaky"
			failure_of "$2" "$out/$1.log" >>"$out/flaky"
			return
		fi
		echo "==== $1: $2 failed alone, at try $try"
		cat "$log"
		! is_finding "$1" "$log" || return 1
	done
	return 1
}

# Tries all failed tests again, one at a time, with nothing beside them. A program whose failed tests pass has passed.
try_again() {
	local name test tests count=0 failed
	for name in $(names failed); do
		mapfile -t tests < <(failed_tests "$out/$name.log")
		count=$((count + ${#tests[@]}))
		! is_finding "$name" "$out/$name.log" && ((${#tests[@]} && count <= most)) || continue
		failed=0
		for test in "${tests[@]}"; do passes_alone "$name" "$test" || failed=1; done
		((failed)) || rm "$out/$name.failed"
	done
	((count <= most)) || echo "==== $count tests failed. That is more than chance: the machine or the code is ill." >&2
}

# Says what did not run, for want of a program. assets.sh has the reasons.
say_left_out() {
	local ignored
	ignored=$(cat "$out"/*.log | awk '/^test result: / { for (i = 2; i <= NF; i++) if ($i ~ /^ignored/) n += $(i - 1) } END { print n + 0 }')
	((ignored == 0)) || printf '==== %s TESTS DID NOT RUN\n%s\n' "$ignored" "${LEADER_GATE_LEFT_OUT:-}"
}

names() { (cd "$out" && find . -name "*.$1" | sed "s|^\./||; s|\.$1\$||" | tr '\n' ' '); } # ENDING

# Runs these programs, each with its .call file, and beside them what calls cargo. Then judges.
programs() { # NAME... [make-TARGET...] [doc]
	local calls_cargo='^(make-.*|doc)$' one_at_a_time two_at_a_time
	mapfile -t one_at_a_time < <(printf '%s\n' "$@" | grep -E "$calls_cargo")
	mapfile -t two_at_a_time < <(printf '%s\n' "$@" | grep -vE "$calls_cargo")
	# Its sleep outlives it, so it must not keep the output open.
	(while sleep 60 >/dev/null 2>&1; do echo "==== still running: $(names running)"; done) &
	minutes=$! # not local: the trap runs after the function
	trap 'kill "$minutes"' EXIT
	printf '%s\n' "${one_at_a_time[@]}" | xargs -r -n 1 "$script" run &
	printf '%s\n' "${two_at_a_time[@]}" | xargs -n 1 -P 2 "$script" run
	wait $!
	try_again
	say_left_out
	[[ ! -f $out/flaky ]] || cat "$out/flaky"
	[[ -z $(names failed) ]] || {
		echo "==== FAILED: $(names failed)" >&2
		exit 1
	}
	kill "$minutes"
	trap - EXIT
}

# Builds test programs, and writes down how cargo calls each.
build() { # OPTIONS OF CARGO TEST...
	cargo test "$@" --no-run
	cargo test --quiet "$@" --config "target.'cfg(all())'.runner = ['$script', 'write_down']"
}

all() { # TARGET...
	rm -rf "$out"
	mkdir -p "$out"
	echo "==== Builds and runs the unit tests, then all others. On two cores the builds take four minutes the first time, and the tests six more."
	build "${packages[@]}" --all-features --lib
	programs $(names call)
	echo "==== the unit tests passed"
	rm "$out"/*.call
	build "${packages[@]}" --all-features --bins --test '*'
	# Shares most dependencies with the build of all features.
	CALLED=gate-alone- build --package kube-leader-gate --no-default-features --features test-util --tests
	# Those that tests run as processes.
	cargo build "${packages[@]}" --all-features --example fence --example leading_only --example minimal --example mixed --example on_signals --example operator --bin kube-leader-gate-sidecar
	export LEADER_GATE_BUILD=${CARGO_TARGET_DIR:-$PWD/target}/debug
	local rest
	rest=$(for name in $(names call); do [[ " ${order[*]} " == *" $name "* ]] || echo "$name"; done)
	echo "==== Two at a time, from the longest (four minutes):" "${order[@]}" $rest
	programs "${order[@]}" $rest "${@/#/make-}" doc
	echo "==== all passed"
}

"${@:-all}"
