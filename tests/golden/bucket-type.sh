#!/usr/bin/env bash
# Creates and activates the bucket type $1 with the properties $2 (JSON) on the node that runs in the directory OMBAK_DATA.
set -euo pipefail
"$OMBAK_PROGRAM" admin bucket-type create "$1" "$2"
"$OMBAK_PROGRAM" admin bucket-type activate "$1"
