#!/usr/bin/env bash
# assets.sh COMMAND...: runs COMMAND with a real API server and promtool. Environment variables say where the programs are:
#   KUBEBUILDER_ASSETS    the folder of etcd, kube-apiserver and kubectl: the caller's own, or built here with Go
#   LEADER_GATE_PROGRAMS  the folder of candidate, kubelet and oracle, our own Go programs
#   PROMTOOL              Prometheus' promtool: the caller's own, or built here with Go
# The script keeps its builds in a cache outside this clone. If it cannot build some of them, it prints a warning and runs
# COMMAND without their variable, but with LEADER_GATE_LEFT_OUT, which says what is missing. With CI=true it fails instead. A compile error always fails. With SERVER_ONLY=1 it cares
# for the API server alone.
set -euo pipefail

(($#)) || { echo "usage: $0 COMMAND..." >&2; exit 2; }
run=("$@")
module=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
promtool_module=$(cd "$module/../promtool" && pwd)
client_go_module=$(cd "$module/../client-go" && pwd) # newer than the API server
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kube-leader-gate
go_needed=$(sed -n 's/^go //p' "$module/go.mod")
kubernetes=$(sed -n 's|^.*k8s.io/kubernetes \(v[0-9.]*\).*$|\1|p' "$module/go.mod")
minor=${kubernetes#v1.}
version=k8s.io/component-base/version
prometheus=$(sed -n 's|^.*github.com/prometheus/prometheus \(v[0-9.]*\).*$|\1|p' "$promtool_module/go.mod")
ldflags="-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}"
promtool_flags=(-tags remove_all_sd -ldflags "-s -w") # no discovery of targets

say() { echo "assets.sh: $*" >&2; }

fail() {
	say "$*"
	exit 1
}

# Prints a warning that says which tests cannot run.
leave_out() { # WHAT WHY HOW
	[[ ${SERVER_ONLY:-} != 1 ]] || fail "$1: missing: $2. $3."
	[[ ${CI:-} != true ]] || fail "$1: missing, but CI=true needs it: $2. $3."
	say "==== SOME TESTS DO NOT RUN. Missing: $1. Reason: $2. $3. ===="
	export LEADER_GATE_LEFT_OUT="${LEADER_GATE_LEFT_OUT:+$LEADER_GATE_LEFT_OUT$'\n'}Missing: $1. Reason: $2. $3."
}

go_in() { (cd "$1" && GOWORK=off exec go "${@:2}"); } # MODULE ARGUMENTS

build() { go_in "$1" build -mod=readonly -trimpath -buildvcs=false "${@:2}"; } # MODULE ARGUMENTS

build_server() { # FOLDER
	say "building etcd, kube-apiserver and kubectl $kubernetes from source: about eight minutes on two cores, but only once"
	build "$module" -ldflags "$ldflags" -o "$1/etcd" go.etcd.io/etcd/server/v3
	build "$module" -ldflags "$ldflags" -o "$1/" k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl
}

build_programs() { # FOLDER
	say "building candidate, kubelet and oracle"
	build "$module" -ldflags "$ldflags" -o "$1/" ./kubelet ./oracle
	build "$client_go_module" -ldflags "-s -w" -o "$1/candidate" .
}

build_promtool() { # FOLDER
	say "building promtool of Prometheus $prometheus from source: a minute or two, but only once"
	build "$promtool_module" "${promtool_flags[@]}" -o "$1/" github.com/prometheus/prometheus/cmd/promtool
}

# Prints why programs of MODULE cannot be built, if so: Go is missing or too old, or a module cannot be downloaded.
obstacle() { # MODULE DOWNLOAD
	local go output
	if ! command -v go >/dev/null; then
		echo "Go is not installed"
	elif ! go=$(go_in "$1" env GOVERSION 2>&1); then
		echo "cannot get Go $go_needed: ${go##*$'\n'}"
	elif [[ $(printf '%s\n' "go$go_needed" "$go" | sort -V | head -n 1) != "go$go_needed" ]]; then
		echo "$go is too old"
	elif ! output=$(go_in "$1" list -mod=readonly -m 2>&1); then
		fail "$1/go.mod is not valid: $output"
	elif ! output=$(go_in "$@" 2>&1); then
		[[ $output != *"checksum mismatch"* ]] || fail "a module does not match go.sum: $output"
		echo "cannot download the Go modules: ${output##*$'\n'}"
	fi
}

# Builds FOLDER with BUILD, completely or not at all, unless it exists. Several processes may try at once. DOWNLOAD is the
# command of Go that downloads what BUILD needs of MODULE. If the build is not possible, sets `why` to the reason.
ensure() { # FOLDER BUILD MODULE DOWNLOAD...
	why=
	[[ ! -d $1 ]] || return 0
	why=$(obstacle "${@:3}")
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

# The name in the cache for a build of MODULE with FLAGS from FILES.
key() { # MODULE FLAGS FILES
	{ uname -sm; echo "$2"; cat "$1/go.mod" "$1/go.sum" "${@:3}"; } | cksum | cut -d ' ' -f 1
}

install_go="Install Go $go_needed or newer and let it reach its module proxy"

set_server() {
	if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
		for name in etcd kube-apiserver kubectl; do
			[[ -x $KUBEBUILDER_ASSETS/$name ]] ||
				fail "KUBEBUILDER_ASSETS is set, but the program $KUBEBUILDER_ASSETS/$name is missing: put it there, or unset the variable so that this script builds all programs with Go"
		done
		KUBEBUILDER_ASSETS=$(cd "$KUBEBUILDER_ASSETS" && pwd)
	else
		KUBEBUILDER_ASSETS=$cache/kubernetes-$kubernetes-$(key "$module" "$ldflags")
		ensure "$KUBEBUILDER_ASSETS" build_server "$module" mod download
		if [[ -n $why ]]; then
			unset KUBEBUILDER_ASSETS
			leave_out "real API server" "$why" \
				"$install_go, or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl (setup-envtest fetches them)"
			return
		fi
	fi
	export KUBEBUILDER_ASSETS
}

set_programs() {
	LEADER_GATE_PROGRAMS=$cache/programs-$(key "$module" "$ldflags" "$module"/{kubelet,oracle}/*.go)
	LEADER_GATE_PROGRAMS+=-$(key "$client_go_module" "" "$client_go_module"/*.go)
	why=
	[[ -d $LEADER_GATE_PROGRAMS ]] || why=$(obstacle "$client_go_module" mod download)
	[[ -n $why ]] || ensure "$LEADER_GATE_PROGRAMS" build_programs "$module" mod download
	if [[ -n $why ]]; then
		unset LEADER_GATE_PROGRAMS
		leave_out "programs with client-go and Kubernetes' request parser" "$why" "$install_go"
		return
	fi
	export LEADER_GATE_PROGRAMS
}

set_promtool() {
	if [[ -n ${PROMTOOL:-} ]]; then
		PROMTOOL=$(command -v "$PROMTOOL") ||
			fail "PROMTOOL is set, but it is no program: set it to a promtool, or unset it so that this script builds one with Go"
		PROMTOOL=$(realpath "$PROMTOOL")
	else
		local folder
		folder=$cache/promtool-$prometheus-$(key "$promtool_module" "${promtool_flags[*]}")
		# The discovery of targets needs the clients of twenty clouds, and the check of rules needs none. So this downloads
		# what the build takes, and not all modules.
		ensure "$folder" build_promtool "$promtool_module" list -mod=readonly -deps "${promtool_flags[@]}" tool
		if [[ -n $why ]]; then
			leave_out promtool "$why" "$install_go, or set PROMTOOL to a promtool"
			return
		fi
		PROMTOOL=$folder/promtool
	fi
	export PROMTOOL
}

unset LEADER_GATE_PROGRAMS LEADER_GATE_LEFT_OUT
set_server
if [[ ${SERVER_ONLY:-} != 1 ]]; then
	set_programs
	set_promtool
fi
exec "${run[@]}"
