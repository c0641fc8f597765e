#!/usr/bin/env bash
# mutants.sh [FILE...]: changes the code in one place at a time, and asks whether a test fails. It takes what differs from
# the commit BASE (the last one, if not given), or whole files, such as 'src/gate/**'. With SAMPLE=n it makes one of n
# changes. Prints what no test has found.
#
# The first pass runs the tests of the gate and of the leadership alone, which take seconds. The second pass runs the
# unit tests, the simulation of one lease and the suite with all features, for those changes that the first one has not found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=target/mutants
diff=$out/base.diff
mkdir -p "$out"
which=()
if (($#)); then
	for file in "$@"; do which+=(--file "$file"); done
else
	git diff "${BASE:-HEAD~1}" -- src >"$diff"
	[[ -s $diff ]] || { echo "mutants.sh: src is as it was in ${BASE:-HEAD~1}" >&2; exit 0; }
	which=(--in-diff "$diff" --file 'src/{request,policy,leadership,gate,lease,election}/**')
fi
# Incremental builds: each change is in one place. A frozen cast of cases is enough to see a change.
export CARGO_INCREMENTAL=1 CARGO_PROFILE_DEV_DEBUG=0 PROPTEST_CASES=${PROPTEST_CASES:-32}
# The code is changed in a copy, which need not build the dependencies again.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
mutants() { cargo mutants --output "$out" --cap-lints=true "${which[@]}" "$@"; }

if [[ ${SAMPLE:-} ]]; then
	# The second pass knows fewer changes than the first, so each is chosen by its name. cargo-mutants would make all changes
	# of this one kind, whatever their names.
	which+=(--exclude-re "delete field")
	names=$(cargo mutants --list "${which[@]}" | awk "NR % $SAMPLE == 0" | sed 's/[][\\.*^$+?(){}|]/\\&/g')
	[[ $names ]] || { echo "mutants.sh: fewer than $SAMPLE changes" >&2; exit 1; }
	while read -r name; do which+=(--re "^$name\$"); done <<<"$names"
fi

[[ $(cargo mutants --list "${which[@]}") || $# -eq 0 ]] || { echo "mutants.sh: there is nothing to change in $*" >&2; exit 1; }
rm -rf "$out/mutants.out" # of another run

# Runs a pass. Returns 0 if tests have missed a change. If a test hangs, that has found the change.
misses() {
	local code=0
	mutants "$@" || code=$?
	# 2: tests have missed a change. 3: a test hangs, and perhaps tests have missed other changes.
	((code == 0 || code == 2 || code == 3)) || exit "$code"
	[[ -d $out/mutants.out ]] || return 1 # there was nothing to change
	cat "$out/mutants.out/timeout.txt" >>"$out/mutants.out/caught.txt" # so the next pass does not repeat it
	[[ -s $out/mutants.out/missed.txt ]]
}

# Cargo builds only the tests that run, not the examples and the other tests.
misses --no-default-features --features test-util --cargo-arg={--lib,--test=gate} || exit 0
! misses --iterate --all-features --test-package={kube-leader-gate,proof,election-sim} --cargo-arg={--lib,--bins,--test=gate,--test=suite} -- -- \
	--skip model:: --skip documents::
