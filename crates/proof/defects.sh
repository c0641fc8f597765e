#!/usr/bin/env bash
# defects.sh [NAME[=TOOL]...]: puts each defect of crates/proof/defects back, one at a time, or only those that are named. If
# a TOOL is named, that one must find it. Prints a table: which tool finds it, after how many states or seeds, and in how
# many seconds of that tool. Fails if no tool finds one of them, or if a tool finds anything in the code as it is.
#
# All defects are built at once, each behind a switch, in a copy of the sources: target/defects/tree.
#
# The tools come in this order, and the first that finds the defect is the one in the table:
# 1. the model of the election with one fault, its three worlds one after the other, each up to STATES states;
# 2. the simulation, from seed 0, SEEDS seeds at most;
# 3. the loom models of the leadership;
# 4. the unit tests of the published packages;
# 5. the model with two faults, each world up to DEEP states.
# Each runs in a process of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
export CARGO_INCREMENTAL=0 PROOF_STATES=${STATES:-20000} SIM_SEEDS=${SEEDS:-6000} SIM_SHRINK=0

say() { echo "defects.sh: $*" >&2; }

say "building"
mkdir -p target/defects
rustc --edition 2024 -o target/defects/put_back crates/proof/defects/put_back.rs
target/defects/put_back target/defects/tree
output=$(cd target/defects/tree && cargo test --no-run --release --target-dir "$root/target/defects/build" \
	--package kube-leader-gate --package kube-leader-gate-early-takeover --package proof \
	--features kube-leader-gate/runtime,kube-leader-gate/test-util --lib --test sim --test loom 2>&1) || {
	echo "$output" >&2
	exit 1
}
built() { sed -n "s|^ *Executable .*(\(.*/$1-[0-9a-f]*\))\$|\1|p" <<<"$output"; }
proof=$(built proof)
sim=$(built sim)
loom=$(built loom)
units=("$(built kube_leader_gate)" "$(built kube_leader_gate_early_takeover)")

worlds=(rules_hold_in_each_order_of_steps_and_faults rules_hold_with_a_slow_api_server rules_hold_beside_client_go)

# Each of these runs a tool. If it finds something, it prints what, and after how much, and returns 0. If it finds nothing,
# it returns 1. If it cannot tell, it returns 2.
in_model() {
	local world output states=0
	for world in "${worlds[@]}"; do
		output=$("$proof" --exact "model::tests::$world" --nocapture 2>&1) && {
			[[ $output == *"1 passed"* ]] || { say "there is no $world"; return 2; }
			states=$((states + $(sed -n 's/.*: \([0-9]*\) states, .*/\1/p' <<<"$output")))
			continue
		}
		local finding
		finding=$(sed -n 's/^the model breaks a rule after \([0-9]*\) states: \(.*\)$/\1 \2/p' <<<"$output" | head -n 1)
		# A defect may keep a world from its first state: then the model says what is missing.
		[[ $finding || $output != *"panicked at"* ]] || finding="0 $(sed -n '/panicked at/{n;p;q}' <<<"$output")"
		[[ $finding ]] || { say "the model fails otherwise: $output"; return 2; }
		echo "${model_name:-model} | $((states + ${finding%% *})) states | ${finding#* }"
		return 0
	done
	return 1
}

in_deep_model() {
	PROOF_FAULTS=2 PROOF_STATES=${DEEP:-1500000} model_name="model with two faults" in_model
}

# Runs tests, and says which of them fail.
in_tests() { # NAME PROGRAM [OPTIONS]
	local name=$1 output finding
	shift
	output=$("$@" 2>&1) && {
		[[ $output == *" 0 failed"* && $output != *" 0 passed"* ]] || { say "$name ran nothing"; return 2; }
		return 1
	}
	finding=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/`\1`/p' <<<"$output" | paste -sd ' ')
	[[ $finding ]] || { say "$name finds nothing, and says: $output"; return 2; }
	echo "$name | $(grep -c '^test .* \.\.\. ' <<<"$output") tests | $finding"
}

in_loom() { in_tests loom "$loom"; }

in_units() {
	local code=0
	in_tests "unit tests" "${units[0]}" || code=$?
	((code == 1)) || return $code
	in_tests "unit tests" "${units[1]}"
}

in_sim() {
	local output finding code=0
	output=$(timeout 1200 "$sim" --exact seeds_bring_no_violation --nocapture 2>&1) || code=$?
	((code != 124)) || { echo "simulation | - | a seed never ends"; return 0; }
	((code)) || {
		[[ $output == *"1 passed"* ]] || { say "the simulation ran nothing"; return 2; }
		return 1
	}
	finding=$(sed -n 's/^seed \([0-9]*\): \(.*\)$/\1 \2/p' <<<"$output" | head -n 1)
	[[ $finding ]] || {
		say "the simulation finds no violation, and says: $(tail -n 5 <<<"$output")"
		# With a defect, its runs may bring too little.
		[[ $LEADER_GATE_DEFECT ]] && return 1 || return 2
	}
	echo "simulation | $((${finding%% *} + 1)) seeds | ${finding#* }"
}

# Prints a row.
look_for() { # NAME [TOOL]
	local began tool found= code
	for tool in in_model in_sim in_loom in_units in_deep_model; do
		began=$EPOCHREALTIME
		code=0
		found=$(LEADER_GATE_DEFECT=$1 $tool) || code=$?
		((code < 2)) || exit 2
		((code)) || break
		found=
	done
	local took
	took=$(awk "BEGIN { printf \"%.1f s\", $EPOCHREALTIME - $began }")
	echo "| \`${1:-none}\` | ${found:-**nothing** | - | -} | $took |"
	[[ $found && $found == "${2:-}"* ]]
}

known=$(find crates/proof/defects -name '*.defect' -exec basename {} .defect \; | sort)
for name in "$@"; do grep -qx -- "${name%=*}" <<<"$known" || { say "there is no defect $name"; exit 2; }; done
names=("$@")
[[ ${#names[@]} -gt 0 ]] || mapfile -t names <<<"$known"
echo "| defect | found by | after | what it finds | in |"
echo "| --- | --- | --- | --- | --- |"
failed=0
if [[ $# -eq 0 ]] && look_for ""; then
	say "a tool finds something in the code as it is"
	failed=1
fi
for name in "${names[@]}"; do
	tool=${name#"${name%=*}"}
	look_for "${name%=*}" "${tool#=}" || failed=1
done
exit $failed
