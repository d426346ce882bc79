"""Scenarios of commit hooks. The functions are those of docs/hooks.md, and some that misbehave."""
import json
import re
import shutil
import tempfile
from pathlib import Path

from properties import everywhere, props, set_props
from world import Pb, World, ask, clock, equal, key_path, message, put, values, wait_for

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "hooks.md"
MISBEHAVING = """
function silent(object) { return object.key === 'special' ? 'fail' : object; }
function number(object) { return { fail: 7 }; }
function nothing(object) { }
function endless(object) { for (;;); }
function greedy(object) { var all = []; for (;;) all.push('x'.repeat(1000)); }
function broken(object) { throw new Error('on purpose'); }
"""


class Functions:
    """A directory with functions: a context manager."""

    def __enter__(self):
        self.path = Path(tempfile.mkdtemp(prefix="ombak-functions-"))
        taught = re.findall(r"```js\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
        (self.path / "hooks.js").write_text("\n".join(taught))
        (self.path / "misbehaving.js").write_text(MISBEHAVING)
        return {"javascript.source_dir": self.path, "javascript.call_time": "500ms"}

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def hook(world, bucket, wanted):
    """Sets hooks of a bucket, and waits until all nodes have them."""
    equal(set_props(world[1], bucket, wanted), (204, ""), f"the hooks {wanted}")
    everywhere(world, "the hooks", lambda member: {name: props(member, bucket)[name] for name in wanted} == wanted)


def stat(member, name):
    return json.loads(ask(member, "GET", "/stats", headers={"Accept": "application/json"})[2])[name]


def log_of(world):
    return "".join((member.data / "log" / "console.log").read_text() for member in world.all())


def verify_commit_hooks():
    """What a pre-commit hook gives back decides about the put: the object, a refusal, a refusal
    with a text, or something that is neither. A hook that breaks down fails its put and nothing
    else. A post-commit hook runs after the put."""
    with Functions() as settings, World(3, settings) as world:
        world.join_all()
        hook(world, "orders", {"precommit": [{"name": "onlyJson"}]})
        for member in world.all():
            refused = put(member, "orders", "k", "no JSON")
            equal(refused, (403, "this bucket takes JSON only"), f"a refusal with a text by node {member.number}")
            equal(values(member, "orders", "k"), [], "what a refused put left")
        equal(put(world[2], "orders", "k", '{"n": 1}'), (204, ""), "a put that the hook allows")
        with Pb(world[3]) as pb:
            said = pb.error(11, [(1, "orders"), (2, "k"), (4, message((1, "no JSON")))])
        equal(said, '{precommit_fail,<<"this bucket takes JSON only">>}', "a refusal over Protocol Buffers")
        equal(ask(world[1], "DELETE", key_path("orders", "k"))[0], 204, "a delete that the hook allows")

        hook(world, "changed", {"precommit": [{"name": "upperCase"}]})
        equal(put(world[1], "changed", "k", "v"), (204, ""), "a put that the hook changes")
        equal(values(world[2], "changed", "k"), ["V"], "what the hook has made of the value")
        equal(put(world[1], "changed", "special", "v", query="?w=3"), (204, ""), "a put before the hook refuses its key")
        hook(world, "changed", {"precommit": [{"name": "silent"}]})
        equal(put(world[1], "changed", "k", "w"), (204, ""), "a put of a key that the hook allows")
        refusal = (403, "PUT aborted by pre-commit hook.\n")
        equal(put(world[1], "changed", "special", "w"), refusal, "a refusal")
        for headers in (None, {"X-Riak-Vclock": clock(world[2], "changed", "special")}):
            status, _, body = ask(world[1], "DELETE", key_path("changed", "special"), headers=headers)
            equal((status, body.decode()), refusal, "a delete of a key that the hook refuses")
        with Pb(world[3]) as pb:
            equal(pb.error(13, [(1, "changed"), (2, "special")]), "precommit_fail", "such a delete over Protocol Buffers")
        equal(values(world[2], "changed", "special", query="?r=3"), ["V"], "what the hook did not let delete")

        for name, status in [("number", 500), ("nothing", 500), ("endless", 403), ("greedy", 403), ("broken", 403),
                             ("unknown", 403)]:
            hook(world, "bad", {"precommit": [{"name": name}]})
            equal(put(world[2], "bad", "k", "v")[0], status, f"the status of a put with the hook {name}")
            equal(put(world[2], "changed", "k", "v"), (204, ""), f"another put after the hook {name}")
        hook(world, "bad", {"precommit": [{"mod": "m", "fun": "f"}]})
        status, body = put(world[2], "bad", "k", "v")
        equal((status, "m,f" in body), (403, True), "a put with a hook in Erlang")
        equal(values(world[1], "bad", "k"), [], "what the refused puts left")
        equal(sum(stat(member, "precommit_fail") for member in world.all()) >= 14, True, "the refusals are counted")

        hook(world, "announced", {"postcommit": [{"name": "announce"}]})
        equal(put(world[3], "announced", "k", "v"), (204, ""), "a put with a post-commit hook")
        wait_for("the post-commit hook", lambda: "stored announced/k" in log_of(world), 30)


def verify_conditional_postcommit():
    """A post-commit hook runs for the buckets whose properties name it, and for no other; without
    the property it runs no more. One that fails is counted, and its put counts nevertheless."""
    with Functions() as settings, World(3, settings) as world:
        world.join_all()
        hook(world, "with", {"postcommit": [{"name": "announce"}]})
        hook(world, "failing", {"postcommit": [{"name": "broken"}]})
        for bucket in ("without", "with"):
            equal(put(world[1], bucket, "first", "v"), (204, ""), f"a put in the bucket {bucket}")
        wait_for("the hook", lambda: "stored with/first" in log_of(world), 30)
        equal("stored without/first" in log_of(world), False, "the hook ran for another bucket")
        equal(put(world[2], "failing", "k", "v"), (204, ""), "a put with a hook that fails")
        equal(values(world[3], "failing", "k"), ["v"], "the value of a put with a hook that fails")
        wait_for("the failure", lambda: sum(stat(member, "postcommit_fail") for member in world.all()) == 1, 30)
        hook(world, "with", {"postcommit": []})
        equal(put(world[1], "with", "second", "v"), (204, ""), "a put without the hook")
        # The hook of a later put runs after it, if both are coordinated by the same node.
        hook(world, "later", {"postcommit": [{"name": "announce"}]})
        for member in world.all():
            equal(put(member, "later", f"k{member.number}", "v"), (204, ""), "a later put")
            wait_for("a later hook", lambda: f"stored later/k{member.number}" in log_of(world), 30)
        equal("stored with/second" in log_of(world), False, "the hook ran after its removal")
