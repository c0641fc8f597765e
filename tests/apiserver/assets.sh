#!/usr/bin/env bash
# assets.sh COMMAND...: runs COMMAND with a real API server at hand, as two folders in its environment:
#   KUBEBUILDER_ASSETS    etcd, kube-apiserver and kubectl: the caller's own, or built here with Go
#   LEADER_GATE_PROGRAMS  candidate, kubelet and oracle, our own Go programs
# What is built stays in a cache outside this clone. Where it cannot be had, COMMAND runs without the variable, and one
# loud line says so; with CI=true that is a failure. What is there but does not compile is one always.
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

# Runs COMMAND all the same, and says loudly what is left out.
run_without() { # WHAT WHY HOW
	[[ ${CI:-} != true ]] || fail "there is no $1, and CI=true asks for it: $2. $3."
	say "==== TESTS ARE LEFT OUT, there is no $1: $2. $3. ===="
	exec "${run[@]}"
}

go_here() { (cd "$module" && GOWORK=off exec go "$@"); }

build() { go_here build -mod=readonly -trimpath -buildvcs=false -ldflags "$ldflags" "$@"; }

build_server() { # FOLDER
	say "building etcd, kube-apiserver and kubectl $kubernetes from source: some minutes, but only this once"
	build -o "$1/etcd" go.etcd.io/etcd/server/v3
	build -o "$1/" k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl
}

build_programs() { # FOLDER
	say "building candidate, kubelet and oracle"
	build -o "$1/" ./candidate ./kubelet ./oracle
}

# Prints why nothing can be built, if so: there is no Go that will do, or no way to the modules.
obstacle() {
	local go output
	if ! command -v go >/dev/null; then
		echo "Go is not installed"
	elif ! go=$(go_here env GOVERSION 2>&1); then
		echo "Go $go_needed cannot be had: ${go##*$'\n'}"
	elif [[ $(printf '%s\n' "go$go_needed" "$go" | sort -V | head -n 1) != "go$go_needed" ]]; then
		echo "$go is too old"
	elif ! output=$(go_here list -mod=readonly -m 2>&1); then
		fail "$module/go.mod is not valid: $output"
	elif ! output=$(go_here mod download 2>&1); then
		[[ $output != *"checksum mismatch"* ]] || fail "a module is not what go.sum says: $output"
		echo "the Go modules cannot be had: ${output##*$'\n'}"
	fi
}

# Makes FOLDER by a BUILD, whole or not at all, unless it is there. Several may try at once. Sets why it cannot be made.
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

# The name in the cache of what is built from FILES.
key() { # FILES
	{ uname -sm; echo "$ldflags"; cat "$module/go.mod" "$module/go.sum" "$@"; } | cksum | cut -d ' ' -f 1
}

unset LEADER_GATE_PROGRAMS
install_go="Install Go $go_needed or newer and let it reach its module proxy"
if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
	for name in etcd kube-apiserver kubectl; do
		[[ -x $KUBEBUILDER_ASSETS/$name ]] ||
			fail "KUBEBUILDER_ASSETS is set, but there is no program $KUBEBUILDER_ASSETS/$name: put it there, or unset the variable to have all built with Go"
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
	run_without "client-go beside it, nor Kubernetes' own reading of requests" "$why" "$install_go"
fi
export LEADER_GATE_PROGRAMS
exec "${run[@]}"
