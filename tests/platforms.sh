#!/usr/bin/env bash
# platforms.sh: checks that what users get compiles on other platforms than this one. It links nothing, so it needs no
# linker and no C compiler for them: what stands for these makes empty files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

targets=(x86_64-pc-windows-msvc aarch64-apple-darwin x86_64-unknown-freebsd)
packages=(--package={kube-leader-gate{,-fence,-early-takeover},fake-kube-apiserver})
features=--features=kube-leader-gate/metrics,kube-leader-gate/runtime,k8s-openapi/v1_35

say() { echo "platforms.sh: $*" >&2; }

command -v rustup >/dev/null || { say "rustup is missing; it has the standard libraries of other platforms"; exit 1; }
rustup --quiet target add "${targets[@]}"

empty=${CARGO_TARGET_DIR:-$PWD/target}/platforms/empty
mkdir -p "${empty%/*}"
cat >"$empty" <<'END'
#!/bin/sh
# In place of a C compiler (-o FILE) and of an archiver (FILE.a or -out:FILE).
for it; do
	[ "$last" != -o ] || : >"$it"
	case $it in
	-out:*) : >"${it#-out:}" ;;
	*.a) : >"$it" ;;
	esac
	last=$it
done
END
chmod +x "$empty"

for target in "${targets[@]}"; do
	say "$target"
	export "CC_${target//-/_}=$empty" "AR_${target//-/_}=$empty"
	check=(cargo check --quiet --locked --target "$target")
	"${check[@]}" "${packages[@]}" "$features"
	"${check[@]}" --package kube-leader-gate --no-default-features
	# The sidecar is for Unix.
	[[ $target == *windows* ]] || "${check[@]}" --package kube-leader-gate-sidecar
done
