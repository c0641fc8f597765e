#!/usr/bin/env bash
# deny.sh CARGO-DENY [OPTIONS...]: checks what comes into the dependency graph, by deny.toml: banned crates, licenses,
# sources, and advisories of RustSec.
# The advisories are in a git repository. If this machine cannot reach it, the script says so, and checks the rest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
deny=("$@")

say() { echo "deny.sh: $*" >&2; }

if why=$("${deny[@]}" fetch db 2>&1); then
	# It has just been fetched.
	"${deny[@]}" check advisories bans licenses sources
	say "the advisories were checked"
else
	"${deny[@]}" check bans licenses sources
	say "$why"
	say "==== ADVISORIES WERE NOT CHECKED: THEIR DATABASE CANNOT BE REACHED. A KNOWN VULNERABILITY WOULD NOT BE SEEN. ===="
fi
