#!/usr/bin/env bash
# loom.sh [OPTIONS]: runs the loom models of the leadership. They alone need `--cfg leader_gate_loom`, so cargo gives it to no
# dependency, and the tests of the gate alone have built all of these.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
built=$(cargo rustc --no-default-features --features test-util --lib --profile test \
	--message-format=json-render-diagnostics -- --cfg leader_gate_loom)
program=$(sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' <<<"$built")
exec "$program" loom "$@"
