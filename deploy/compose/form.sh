#!/bin/sh
# Makes nodes one cluster, and waits until they agree. It changes nothing if they are one already.
#
# OMBAK_NODES has the addresses of the nodes, such as "10.0.0.1 10.0.0.2". OMBAK_ADMIN_TOKEN is the
# token of all of them. The ports are those of the configuration's defaults, or OMBAK_FORM_HTTP_PORT
# and OMBAK_FORM_PEER_PORT. OMBAK_FORM_SECONDS says how long the nodes may take to start.
set -eu

http=${OMBAK_FORM_HTTP_PORT:-8098}
peer=${OMBAK_FORM_PEER_PORT:-8099}
limit=${OMBAK_FORM_SECONDS:-120}
nodes=${OMBAK_NODES:?names the addresses of the nodes}
first=${nodes%% *}

# Runs a command about the cluster at the node with this address.
at() {
    address=$1
    shift
    ombak admin --node "$address:$http" "$@"
}

# Repeats a command until it succeeds or the time is over.
wait_for() {
    what=$1
    shift
    began=$(date +%s)
    until "$@" >/dev/null 2>&1; do
        if [ $(($(date +%s) - began)) -ge "$limit" ]; then
            echo "form: $what takes longer than $limit s:" >&2
            "$@"
            exit 1
        fi
        sleep 0.5
    done
}

members() {
    at "$1" member-status --json | grep -o '"name":' | wc -l
}

for node in $nodes; do
    wait_for "the start of $node" ombak ping --node "$node:$http"
done
wait_for "the first node's cluster" at "$first" ringready
for node in $nodes; do
    # A node that is alone is a cluster of its own.
    if [ "$node" != "$first" ] && [ "$(members "$node")" -eq 1 ]; then
        at "$node" cluster join "$first:$peer"
    fi
done
if at "$first" member-status | grep -q '^joining'; then
    at "$first" cluster plan
    at "$first" cluster commit
fi
for node in $nodes; do
    wait_for "the agreement of $node with the others" at "$node" ringready
done
at "$first" member-status
