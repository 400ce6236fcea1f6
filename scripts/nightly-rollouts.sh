#!/bin/sh
# Orders the rollouts of a configuration and waits for them: nightly-rollouts.sh CONFIG.toml [DATA].
# PROCTOR names the program, and PROCTOR_GATEWAY and PROCTOR_API_KEY the gateway, as for any command.
set -eu
config=${1:?"give a configuration: nightly-rollouts.sh CONFIG.toml [DATA]"}
data=${2:-data}
mkdir -p "$data"
# A night that takes longer than a day is followed by none.
exec 9>"$data/.nightly.lock"
if ! flock --nonblock 9; then
    echo "The rollouts before are not at their end: nothing was ordered." >&2
    exit 75
fi
exec "${PROCTOR:-proctor}" rollouts run "$config" --data "$data" -v >>"$data/nightly.log" 2>&1
