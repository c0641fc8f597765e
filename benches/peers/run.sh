#!/usr/bin/env bash
# run.sh ARGUMENTS...: builds the candidates and the driver, and runs the driver with ARGUMENTS. The programs of the API
# server come from tests/apiserver/assets.sh: run it through `make -C benches peers` or `make -C benches cost`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" # cargo finds its configuration from here
output=$PWD/../../target/peers

cargo build --release --locked --workspace
echo "building the candidates in Go" >&2
(cd go && GOWORK=off go build -mod=readonly -trimpath -buildvcs=false -ldflags "-s -w" -o "$output/go/" ./client-go ./controller-runtime)
exec "$output/release/driver" "$@"
