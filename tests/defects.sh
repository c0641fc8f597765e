#!/usr/bin/env bash
# defects.sh [NAME[=TOOL]...]: puts each defect of src/defect.rs back, one at a time, or only those that are named. If a TOOL
# is named, that one must find it. Prints a table: which tool finds it, after how many states or seeds, and in how many
# seconds of that tool. Fails if no tool finds one of them, or if a tool finds anything in the code as it is.
#
# The tools come in this order, and the first that finds the defect is the one in the table:
# 1. the model of the election with one fault, its three worlds one after the other, each up to STATES states;
# 2. the simulation, from seed 0, SEEDS seeds at most;
# 3. the loom models of the leadership;
# 4. the model with two faults, each world up to DEEP states.
# Each runs in a process of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_INCREMENTAL=0 PROOF_STATES=${STATES:-20000} SIM_SEEDS=${SEEDS:-6000} SIM_SHRINK=0

say() { echo "defects.sh: $*" >&2; }

say "building"
output=$(RUSTFLAGS="--cfg leader_gate_defects" \
	cargo test --no-run --release --features test-util --lib --test sim --target-dir target/defects 2>&1) || {
	echo "$output" >&2
	exit 1
}
built=$(sed -n 's/^ *Executable .*(\(.*\))$/\1/p' <<<"$output")
model=$(grep /kube_leader_gate- <<<"$built")
sim=$(grep /sim- <<<"$built")
tests/loom.sh --list >/dev/null

worlds=(rules_hold_in_each_order_of_steps_and_faults rules_hold_with_a_slow_api_server rules_hold_beside_client_go)

# Each of these runs a tool. If it finds something, it prints what, and after how much, and returns 0. If it finds nothing,
# it returns 1. If it cannot tell, it returns 2.
in_model() {
	local world output states=0
	for world in "${worlds[@]}"; do
		output=$("$model" --exact "election::candidacy::model::tests::$world" --nocapture 2>&1) && {
			[[ $output == *"1 passed"* ]] || { say "there is no $world"; return 2; }
			states=$((states + $(sed -n 's/.*: \([0-9]*\) states, .*/\1/p' <<<"$output")))
			continue
		}
		local finding
		finding=$(sed -n 's/^the model breaks a rule after \([0-9]*\) states: \(.*\)$/\1 \2/p' <<<"$output" | head -n 1)
		[[ $finding ]] || { say "the model fails otherwise: $output"; return 2; }
		echo "${model_name:-model} | $((states + ${finding%% *})) states | ${finding#* }"
		return 0
	done
	return 1
}

in_deep_model() {
	PROOF_FAULTS=2 PROOF_STATES=${DEEP:-1500000} model_name="model with two faults" in_model
}

in_sim() {
	local output finding
	output=$("$sim" --exact seeds_bring_no_violation --nocapture 2>&1) && {
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

in_loom() {
	local output finding
	output=$(tests/loom.sh 2>&1) && {
		[[ $output == *" 0 failed"* && $output != *" 0 passed"* ]] || { say "loom ran nothing"; return 2; }
		return 1
	}
	finding=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' <<<"$output" | paste -sd ' ')
	[[ $finding ]] || { say "loom finds nothing, and says: $output"; return 2; }
	echo "loom | $(grep -c '^test .* \.\.\. ' <<<"$output") models | $finding"
}

# Prints a row.
look_for() { # NAME [TOOL]
	local began tool found= code
	for tool in in_model in_sim in_loom in_deep_model; do
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

known=$(sed -n 's/^    "\([a-z-]*\)",$/\1/p' src/defect.rs)
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
