#!/usr/bin/env bash
# assets.sh COMMAND...: runs COMMAND with a real API server. Two environment variables name folders with programs:
#   KUBEBUILDER_ASSETS    etcd, kube-apiserver and kubectl: the caller's own, or built here with Go
#   LEADER_GATE_PROGRAMS  candidate, kubelet and oracle, our own Go programs
# The script keeps its builds in a cache outside this clone. If it cannot build the programs, it runs COMMAND without the
# variable and prints a warning. With CI=true it fails instead. A compile error always fails.
set -euo pipefail

(($#)) || { echo "usage: $0 COMMAND..." >&2; exit 2; }
run=("$@")
module=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kube-leader-gate
go_needed=$(sed -n 's/^go //p' "$module/go.mod")
kubernetes=$(sed -n 's|^.*k8s.io/kubernetes \(v[0-9.]*\).*$|\1|p' "$module/go.mod")
minor=${kubernetes#v1.}
version=k8s.io/component-base/version
ldflags="-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}"

say() { echo "assets.sh: $*" >&2; }

fail() {
	say "$*"
	exit 1
}

# Runs COMMAND without the programs, and prints a warning that says which tests cannot run.
run_without() { # WHAT WHY HOW
	[[ ${CI:-} != true ]] || fail "$1: missing, but CI=true needs it: $2. $3."
	say "==== SOME TESTS DO NOT RUN. Missing: $1. Reason: $2. $3. ===="
	exec "${run[@]}"
}

go_here() { (cd "$module" && GOWORK=off exec go "$@"); }

build() { go_here build -mod=readonly -trimpath -buildvcs=false -ldflags "$ldflags" "$@"; }

build_server() { # FOLDER
	say "building etcd, kube-apiserver and kubectl $kubernetes from source: this takes some minutes, but only once"
	build -o "$1/etcd" go.etcd.io/etcd/server/v3
	build -o "$1/" k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl
}

build_programs() { # FOLDER
	say "building candidate, kubelet and oracle"
	build -o "$1/" ./candidate ./kubelet ./oracle
}

# Prints why the programs cannot be built, if so: Go is missing or too old, or the modules cannot be downloaded.
obstacle() {
	local go output
	if ! command -v go >/dev/null; then
		echo "Go is not installed"
	elif ! go=$(go_here env GOVERSION 2>&1); then
		echo "cannot get Go $go_needed: ${go##*$'\n'}"
	elif [[ $(printf '%s\n' "go$go_needed" "$go" | sort -V | head -n 1) != "go$go_needed" ]]; then
		echo "$go is too old"
	elif ! output=$(go_here list -mod=readonly -m 2>&1); then
		fail "$module/go.mod is not valid: $output"
	elif ! output=$(go_here mod download 2>&1); then
		[[ $output != *"checksum mismatch"* ]] || fail "a module does not match go.sum: $output"
		echo "cannot download the Go modules: ${output##*$'\n'}"
	fi
}

# Builds FOLDER with BUILD, completely or not at all, unless it exists. Several processes may try at once. If the build is
# not possible, sets `why` to the reason.
ensure() { # FOLDER BUILD
	why=
	[[ ! -d $1 ]] || return 0
	why=$(obstacle)
	[[ -z $why ]] || return 0
	mkdir -p "$cache"
	(
		if command -v flock >/dev/null && ! flock -n 9; then
			say "waiting for another build"
			flock 9
		fi
		[[ ! -d $1 ]] || exit 0
		building=$(mktemp -d "$cache/building.XXXXXX")
		trap 'rm -rf "$building"' EXIT
		"$2" "$building"
		mv "$building" "$1"
	) 9>"$cache/lock"
}

# The name in the cache for a build from FILES.
key() { # FILES
	{ uname -sm; echo "$ldflags"; cat "$module/go.mod" "$module/go.sum" "$@"; } | cksum | cut -d ' ' -f 1
}

unset LEADER_GATE_PROGRAMS
install_go="Install Go $go_needed or newer and let it reach its module proxy"
if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
	for name in etcd kube-apiserver kubectl; do
		[[ -x $KUBEBUILDER_ASSETS/$name ]] ||
			fail "KUBEBUILDER_ASSETS is set, but the program $KUBEBUILDER_ASSETS/$name is missing: put it there, or unset the variable so that this script builds all programs with Go"
	done
	KUBEBUILDER_ASSETS=$(cd "$KUBEBUILDER_ASSETS" && pwd)
else
	KUBEBUILDER_ASSETS=$cache/kubernetes-$kubernetes-$(key)
	ensure "$KUBEBUILDER_ASSETS" build_server
	if [[ -n $why ]]; then
		unset KUBEBUILDER_ASSETS
		run_without "real API server" "$why" \
			"$install_go, or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl (setup-envtest fetches them)"
	fi
fi
export KUBEBUILDER_ASSETS
LEADER_GATE_PROGRAMS=$cache/programs-$(key "$module"/{candidate,kubelet,oracle}/*.go)
ensure "$LEADER_GATE_PROGRAMS" build_programs
if [[ -n $why ]]; then
	unset LEADER_GATE_PROGRAMS
	run_without "programs with client-go and Kubernetes' request parser" "$why" "$install_go"
fi
export LEADER_GATE_PROGRAMS
exec "${run[@]}"
