#!/usr/bin/env python3
"""Tests what an operator sees and does on a cluster of five real nodes: transfers, handoff, limits,
tombstones to reap, statistics, peers that are down or stopped, and what commands say to wrong
arguments. All figures come from real requests.

Usage: run.py"""
import shutil
import signal
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from cluster import Refused  # noqa: E402
from members import Cluster, wait_for  # noqa: E402

NODES = 5
KEYS = 120
DELETED = 10
BUCKET = "/buckets/operations/keys"


class Check:
    """Counts what holds and what does not."""

    passed = failed = 0

    def __call__(self, what, found, wanted=True):
        if found == wanted:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}: {found!r} in place of {wanted!r}", flush=True)

    def comes(self, what, found, wanted=True):
        """Waits until something is as wanted: the statistics of a node are up to a second old."""
        try:
            wait_for(what, lambda: found() == wanted, 30)
        except Refused:
            pass
        self(what, found(), wanted)

    def holds(self, what, text, *parts):
        for part in parts:
            self(f"{what} says '{part}'", part in text or text, True)


def total(cluster, name, nodes=None):
    return sum(node.stats()[name] for node in nodes or cluster.nodes if node.process.poll() is None)


def put(node, key, value):
    status, body = node.request("PUT", f"{BUCKET}/{key}", value.encode(), {"Content-Type": "text/plain"})
    assert status == 204, (status, body)


def peer(node, other):
    return next(peer for peer in node.stats()["ombak_peers"] if peer["name"] == other.name)


def members(node, command="transfers"):
    return {member["name"]: member for member in node.json("admin", command)["members"]}


def settle(cluster, check, what):
    code, out, _ = cluster.nodes[0].run("admin", "cluster", "settled", "--reaped", "--wait", 60)
    check(f"{what}: everything settles", (code, out),
          (0, "TRUE Everything lies where it belongs, and nothing waits to be reaped"))


def quiet(cluster, check):
    one = cluster.nodes[0]
    settle(cluster, check, "a new cluster")
    check("nothing is transferred", one.ok("admin", "transfers"), "No transfers active")
    check("an idle node owes nothing", members(one)[one.name]["owed"], {"count": 0, "list": []})
    limits = one.ok("admin", "transfer-limit")
    check.holds("transfer-limit", limits, "Transfer Limit", "200.0 MB/s", f"'{cluster.nodes[4].name}'")
    vnodes = [node.json("admin", "vnode-status")["vnodes"] for node in cluster.nodes]
    owned = sum(vnode["cluster"]["owner"] for node in vnodes for vnode in node)
    check("each partition has one owner", owned, 16)


def hints(cluster, check):
    """Writes while a node is down, and hands back when that is allowed."""
    one, two = cluster.nodes[:2]
    table = one.ok("admin", "handoff", "disable", "both", "--all")
    check("handoff is off on all nodes", [line.split()[1:3] for line in table.splitlines()[-NODES:]], [["off", "off"]] * NODES)
    two.kill()
    wait_for("node 1 sees that node 2 is down", lambda: peer(one, two)["state"] == "down")
    check("a node that is down gets no requests", (peer(one, two)["up"], peer(one, two)["slow"]), (False, False))
    check.holds("/metrics", one.metrics(), f'ombak_peer_state{{peer="{two.name}",state="down"}} 1',
                f'ombak_peer_up{{peer="{two.name}"}} 0')
    for number in range(KEYS):
        put(one, number, f"value {number}")
    text = one.ok("admin", "transfers")
    check.holds("transfers", text, f"Nodes ['{two.name}'] are currently down.", "waiting to handoff",
                "hands nothing off and takes nothing: handoff is disabled", "No transfers active")
    held = sum(member["hints"]["objects"] for member in members(one).values() if member["up"])
    check("the others hold hints", held > 0)
    check.comes("the statistics say the same", lambda: total(cluster, "ombak_hints_objects"), held)
    vnodes = [vnode["cluster"]["hints"] for node in cluster.nodes if node is not two
              for vnode in node.json("admin", "vnode-status")["vnodes"]]
    check("vnode-status says the same", sum(vnode["objects"] for vnode in vnodes if vnode), held)
    check.comes("puts were forwarded", lambda: one.stats()["coord_redirs_total"] > 0)
    check.comes("others coordinated them", lambda: total(cluster, "ombak_puts_coordinated_for_others")
                - total(cluster, "coord_redirs_total"), 0)
    code, out, _ = one.run("admin", "cluster", "settled")
    check("a cluster with hints is not settled", code, 1)
    check.holds("settled", out, "FALSE", "partitions with hints", f"'{two.name}' does not answer")
    two.run_again()
    for node in cluster.nodes:
        if node is not two:
            wait_for(f"node {node.number} sees that node 2 is up", lambda: peer(node, two)["up"])
    check("nothing was handed back", (total(cluster, "hinted_handoff_objects_sent"), total(cluster, "ombak_hints_objects")),
          (0, held))
    # Node 2 takes nothing, the others hand off: it refuses.
    one.ok("admin", "handoff", "disable", "inbound", "-n", two.name)
    one.ok("admin", "handoff", "enable", "outbound", "--all")
    wait_for("node 2 refuses a handoff", lambda: two.stats()["rejected_handoffs"] > 0)
    state = members(two)[two.name]
    check("node 2 takes nothing", state["handoff"], {"inbound": False, "outbound": True})
    # What reads repair needs no handoff, so this comes after the refusal.
    read_repair(cluster, check)
    one.ok("admin", "handoff", "enable", "both", "--all")
    settle(cluster, check, "enabled handoff")
    check.comes("hints were handed back", lambda: total(cluster, "hinted_handoff_objects_sent") > 0)
    check.comes("they have bytes", lambda: total(cluster, "hinted_handoff_bytes_sent") > 0)
    check.comes("no hints are left", lambda: total(cluster, "ombak_hints_objects"), 0)
    sent = total(cluster, "hinted_handoff_objects_sent") + total(cluster, "repair_handoff_objects_sent")
    check.comes("node 2 and others received them", lambda: total(cluster, "ombak_handoff_objects_received") >= sent > 0)
    check.holds("/metrics", two.metrics(), "ombak_handoff_received_objects_total ", "ombak_hints_objects 0")


def read_repair(cluster, check):
    """Reads half of the keys. Handoff brings the others. What node 2 does not find is no answer
    yet: it was killed before it had written anything, so it compares its stores with the others
    first."""
    one = cluster.nodes[0]
    for number in range(KEYS // 2):
        status, body = one.request("GET", f"{BUCKET}/{number}?r=2")
        check(f"key {number} is found", (status, body), (200, f"value {number}".encode()))
    wait_for("reads repair node 2", lambda: one.stats()["read_repairs_total"])
    # Repairs go on after the answers of the reads.
    check.comes("node 2 lacked the keys", lambda: has_only(one.stats(), "read_repairs_primary_notfound_count"))


def has_only(stats, kind):
    return stats[kind] == stats["read_repairs_total"]


def tombstones(cluster, check):
    one = cluster.nodes[0]
    before = total(cluster, "ombak_reaping_removed")
    for number in range(DELETED):
        check(f"key {number} is deleted", one.request("DELETE", f"{BUCKET}/{number}")[0], 204)
    code, out, _ = one.run("admin", "cluster", "settled", "--reaped", "--json")
    check("tombstones wait", (code, '"reaped":false' in out), (1, True))
    check.holds("settled", one.run("admin", "cluster", "settled")[1], "tombstones or expired values to reap")
    settle(cluster, check, "after deletes")
    check.comes("each primary removed them", lambda: total(cluster, "ombak_reaping_removed") - before, 3 * DELETED)
    check.comes("rounds were counted", lambda: total(cluster, "ombak_reaping_rounds") > 0)
    check.comes("nothing waits", lambda: total(cluster, "ombak_reaping_waiting"), 0)


def listings(cluster, check):
    one = cluster.nodes[0]
    status, body = one.request("GET", f"{BUCKET}?keys=true")
    check("a listing is complete", (status, body.count(b'"') // 2 - 1), (200, KEYS - DELETED))
    check.comes("node 1 asked others", lambda: one.stats()["ombak_coverage_parts_sent"] > 0)
    check.comes("they answered", lambda: total(cluster, "ombak_coverage_parts_served")
                - total(cluster, "ombak_coverage_parts_sent"), 0)


def stopped(cluster, check):
    """A process that is stopped gets no requests, and comes back."""
    one, three = cluster.nodes[0], cluster.nodes[2]
    three.send(signal.SIGSTOP)
    wait_for("a stopped node gets no requests", lambda: not peer(one, three)["up"])
    code, out, _ = one.run("admin", "ringready")
    check("ringready names it", (code, out), (1, f"FALSE ['{three.name}'] down.  All nodes need to be up to check."))
    check.holds("transfers", one.ok("admin", "transfers"), f"Nodes ['{three.name}'] are currently down.")
    three.send(signal.SIGCONT)
    wait_for("it gets requests again", lambda: peer(one, three)["up"])
    wait_for("it answers questions again", lambda: one.run("admin", "ringready")[0] == 0)


def limits(cluster, check):
    one, two = cluster.nodes[:2]
    check.holds("transfer-limit 2", one.ok("admin", "transfer-limit", 2), *(f"    2       200.0 MB/s      '{node.name}'" for node in cluster.nodes))
    text = one.ok("admin", "transfer-limit", two.name, 0, "--rate", "5MB")
    check.holds("transfer-limit NODE LIMIT", text, f"    0       5.0 MB/s        '{two.name}'")
    check("the limit of one node", {of["transfer_limit"] for name, of in members(one).items() if name != two.name}, {2})
    check.holds("transfers", one.ok("admin", "transfers"), f"'{two.name}' begins no transfers: its transfer limit is 0")
    one.ok("admin", "transfer-limit", 4, "--rate", "200MB")


def wrong_use(cluster, check):
    one, two = cluster.nodes[:2]
    for words, code, part in [
        (("cluster", "join", "nowhere"), 1, "name the address on which a member listens"),
        (("cluster", "join", two.peer), 1, "already a member of a cluster"),
        (("cluster", "commit"), 1, "You must verify the plan"),
        (("down", two.name), 1, f"Failed: {two.name} is up"),
        (("down", "nobody@nowhere"), 1, "Failed: 'nobody@nowhere' is not a member of the cluster."),
        (("handoff", "enable", "both", "-n", "nobody@nowhere"), 1, "Failed: 'nobody@nowhere' is not a member of the cluster."),
        (("transfer-limit", "nobody@nowhere", "3"), 1, "Failed: 'nobody@nowhere' is not a member of the cluster."),
        (("transfer-limit", "many"), 2, "many: LIMIT is a number from 0 to 1024"),
        (("transfer-limit", "2", "--rate", "fast"), 2, "--rate fast"),
        (("handoff", "disable"), 2, "<DIRECTION>"),
        (("handoff", "disable", "up"), 2, "inbound, outbound, both"),
        (("handoff", "disable", "both", "--all", "-n", two.name), 2, "cannot be used with"),
        (("set", "handoff.inbound=off"), 1, "use 'ombak admin handoff enable|disable"),
    ]:
        found, out, error = one.run("admin", *words)
        check(f"{' '.join(words)} fails", (found, out), (code, ""))
        check.holds(" ".join(words), error, part)
    check("nothing to plan", one.run("admin", "cluster", "plan")[:2], (0, "There are no staged changes"))


def stop(node):
    node.send(signal.SIGTERM)
    check_code = node.process.wait(60)
    assert check_code == 0, check_code


def keys_of(report):
    return sum(store["keys"] for store in report["stores"])


def files_of_a_member(cluster, check):
    """What import, restore and verify do on a member."""
    one, two = cluster.nodes[:2]
    check.holds("backup", one.ok("admin", "backup", "saved"), "backup taken in")
    stop(two)
    (cluster.directory / "riak" / "0").mkdir(parents=True)
    code, out, error = two.run("import", "bitcask", cluster.directory / "riak")
    check("an import into a member is refused", (code, out), (1, ""))
    saved = f"{one.data}-backups/saved"
    config = cluster.directory / "restored.conf"
    config.write_text(two.config.read_text().replace(str(two.data), str(cluster.directory / "restored")))
    restored = type(two)(cluster.directory, 9, "127.0.5.9", (1, 2, 3), {})
    restored.config.write_text(config.read_text())
    code, out, error = restored.run("restore", saved)
    check("a restore of a member is refused", (code, out), (1, ""))
    check.holds("restore", error, "listener.peer.internal is set", "does not bring a member back", "--new-cluster")
    check("a refused restore changes nothing", (cluster.directory / "restored").exists(), False)
    check.holds("restore --new-cluster", restored.ok("restore", saved, "--new-cluster"), "restored:")
    verify_and_repair(cluster, check, two)


def verify_and_repair(cluster, check, node):
    verify = ("admin", "backend", "verify")
    before = node.json(*verify)
    check("the stores of a member are examined", (before["damaged"], before["member"]), (0, True))
    files = [path for path in (node.data / "bitcask").rglob("*") if path.is_file()]
    path = next(path for path in files if b"value 5" in path.read_bytes())
    content = bytearray(path.read_bytes())
    content[content.index(b"value 5")] ^= 1
    path.write_bytes(content)
    code, out, _ = node.run(*verify)
    check("damage is found", code, 1)
    check.holds("verify", out, "Damaged: 1 place", "Other members that have a copy replace a damaged value when it is read")
    code, out, _ = node.run(*verify, "--repair")
    check("damage is removed", code, 0)
    check.holds("verify --repair", out, "Repaired: ", "After its start it compares the repaired partitions with the other")
    check("a key is missing", keys_of(node.json(*verify)), keys_of(before) - 1)
    node.run_again()
    cluster.wait_agreed()
    settle(cluster, check, "a repaired member")
    stop(node)
    check("the other members brought it back", keys_of(node.json(*verify)), keys_of(before))


def restored_keys(cluster, check):
    """The stores of a node are set back to a copy in which a key was not deleted yet."""
    one, two = cluster.nodes[:2]
    stores = two.data / "bitcask"
    held = [number for number in range(DELETED, KEYS)
            if any(f"value {number}".encode() in path.read_bytes() for path in stores.rglob("*.data"))]
    key = held[-1]
    copy = cluster.directory / "copy"
    shutil.copytree(stores, copy)
    two.run_again()
    cluster.wait_agreed()
    settle(cluster, check, "before the delete")
    check(f"key {key} is deleted", one.request("DELETE", f"{BUCKET}/{key}")[0], 204)
    settle(cluster, check, "after the delete")
    check("nothing was restored yet", two.ok("admin", "cluster", "restored-keys"), "No key is held by a restored store alone")
    stop(two)
    shutil.rmtree(stores)
    shutil.copytree(copy, stores)
    two.run_again("--accept-loss")
    cluster.wait_agreed()
    settle(cluster, check, "restored stores")
    report = two.json("admin", "cluster", "restored-keys")
    check("the deleted key is set aside", [(of["bucket"], of["key"], of["compared"]) for of in report["keys"]],
          [("operations", str(key), True)])
    check("it is not served", two.request("GET", f"{BUCKET}/{key}")[0], 404)
    check.holds("restored-keys", two.ok("admin", "cluster", "restored-keys"), f"default/operations/{key}", "'--drop' removes them")
    check("a decision needs keys", two.run("admin", "cluster", "restored-keys", "--drop")[0], 2)
    check("nothing is unreadable", two.ok("admin", "cluster", "unreadable-keys"), "This node has found no key that it cannot read")
    check("nothing is given up", two.ok("admin", "cluster", "unreadable-keys", "--drop", "--all"), "0 keys given up")
    check("giving up needs keys", two.run("admin", "cluster", "unreadable-keys", "--drop")[0], 2)
    check("keys need a decision", two.run("admin", "cluster", "restored-keys", "--all")[0], 2)
    check.holds("--push", two.ok("admin", "cluster", "restored-keys", "--push", "--bucket", "operations", "--key", key), "1 keys taken back")
    settle(cluster, check, "after the push")
    check("the key is back on all", one.request("GET", f"{BUCKET}/{key}?r=3")[0], 200)
    check("nothing is left", two.ok("admin", "cluster", "restored-keys", "--drop", "--all"), "0 keys removed")


def main():
    check = Check()
    with Cluster(NODES, "127.0.5", {"logger.level": "warning"}) as cluster:
        for part in (quiet, hints, tombstones, listings, stopped, limits, wrong_use, files_of_a_member, restored_keys):
            part(cluster, check)
        if check.failed:
            cluster.print_logs()
    print(f"{check.passed} passed, {check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
