#!/usr/bin/env bash
# release.sh package: makes and builds each package that the registry would get, in the order of publication, and uploads none.
# release.sh check VERSION: checks that VERSION may be released, and prints what a person must still do.
# release.sh semver REVISION: checks that the changes of the public items since REVISION fit the versions of the packages.
# release.sh names: prints the names of the packages.
#
# cargo finds the packages: all of this workspace without `publish = false`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

faults=0
fault() {
	echo "release.sh: $*" >&2
	faults=$((faults + 1))
}

published() { grep -L '^publish = false' Cargo.toml crates/*/Cargo.toml; }

names() { published | xargs sed -n 's/^name = "\(kube-leader-gate.*\|fake-kube-apiserver\)"$/\1/p'; }

# Fills `packages` with these names, as options of cargo.
set_packages() { mapfile -t packages < <(names | sed 's/^/--package=/'); }

check() { # VERSION
	local version=$1 manifest
	[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] ||
		{ fault "the version is '$version', allowed: three numbers, as in make release VERSION=0.1.0"; return; }
	for manifest in $(published); do
		grep -qx "version = \"$version\"" "$manifest" || fault "$manifest has another version than $version"
		grep -qx "repository.workspace = true" "$manifest" || fault "$manifest does not take the repository's address from the workspace"
	done
	grep -qE "^## \[$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
		fault "CHANGELOG.md has no heading '## [$version] - YYYY-MM-DD'"
	! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null || fault "the tag v$version exists already"
	[[ -z $(git status --porcelain) ]] || fault "there are changes without a commit"
	grep -q '^repository = "https://' Cargo.toml ||
		fault "Cargo.toml has no address of the repository: set 'repository' in [workspace.package]"
	# Without an earlier release there is nothing to compare with.
	local last
	last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || return 0
	semver "$last" || fault "the changes since $last need a higher version"
}

semver() { # REVISION
	set_packages
	make target/tools/bin/cargo-semver-checks
	PATH=$PWD/target/tools/bin:$PATH cargo semver-checks "${packages[@]}" --baseline-rev "$1"
}

case ${1:-} in
package)
	set_packages
	# cargo takes what an earlier call has unpacked and built, whatever has changed since.
	rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/{kube-leader-gate,fake-kube-apiserver}*-[0-9]*
	rm -rf "${CARGO_TARGET_DIR:-target}"/debug/.fingerprint/{kube-leader-gate,fake-kube-apiserver}*
	exec cargo publish --dry-run "${packages[@]}" --allow-dirty
	;;
check)
	check "${2:-}"
	((faults == 0)) || exit 1
	cat <<-END
		$2 may be released. What a person must still do:
		1. CI=true make check release-check
		2. make minimal RUN=1
		3. git tag --annotate v$2 && git push origin v$2
		4. cargo publish --workspace
	END
	;;
semver) semver "${2:?a revision}" ;;
names) names ;;
*)
	echo "usage: $0 package | check VERSION | semver REVISION | names" >&2
	exit 2
	;;
esac
