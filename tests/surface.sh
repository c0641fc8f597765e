#!/usr/bin/env bash
# surface.sh: lists the public items of each package that the registry gets, in tests/surface, so that a change of them is
# seen in review. Fails if a list changes. `make docs` calls it, since both need the same builds.
#
# The lists come from rustdoc's JSON, whose format changes with the version of Rust, and the library that reads it knows one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rust=1.95.0 # of the format that public-api in crates/test-support/Cargo.toml reads
cargo=(cargo)
if [[ $(rustc --version) != "rustc $rust "* ]]; then
	command -v rustup >/dev/null || { echo "surface.sh: the lists need Rust $rust: install rustup, which brings it" >&2; exit 1; }
	rustup toolchain install --profile minimal "$rust" >&2
	cargo=(rustup run "$rust" cargo)
fi
target=${CARGO_TARGET_DIR:-$PWD/target}
# Its only use of a feature that is not stable: rustdoc alone, so that nothing else is built anew.
mkdir -p "$target/surface"
cat >"$target/surface/rustdoc" <<'END'
#!/bin/sh
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
END
chmod +x "$target/surface/rustdoc"
RUSTDOC=$target/surface/rustdoc RUSTDOCFLAGS="-Z unstable-options --output-format json" \
	"${cargo[@]}" doc --quiet --workspace --no-deps --all-features
"${cargo[@]}" build --quiet --package test-support --example surface

changed=0
mkdir -p tests/surface
for package in $(tests/release.sh names); do
	list=tests/surface/$package.txt
	"$target/debug/examples/surface" "$target/doc/${package//-/_}.json" >"$target/surface/$package.txt"
	[[ -f $list ]] || : >"$list"
	if ! diff --unified=0 "$list" "$target/surface/$package.txt"; then
		cp "$target/surface/$package.txt" "$list"
		changed=1
	fi
done
((changed == 0)) || { echo "surface.sh: the public items have changed, and so have the lists in tests/surface: commit these if that is meant" >&2; exit 1; }
