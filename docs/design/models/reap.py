# Reaping (replication.md, section 6): random histories of one key on five nodes, message by message.
# The first n nodes of A, B, C are the key's primaries; the others are stand-ins.
# reap.py                 runs the rule on 20,000 histories and each changed rule on one that it fails
# reap.py 40000           counts the failures of each rule in 40,000 histories
# reap.py 40000 'is not synced'   the same for the rules whose names contain these words
# Add the word "show" to see a history that fails (the shortest one, after a count).
import random, sys
from actors import Node as Actors, desc, merge as merge_events

NAMES = 'ABCDEX'   # X is another cluster
L = 60              # life of a message under the old rule; the length of one step is 1
FORWARD_MAX = 6     # age at which a coordinator refuses a forwarded put

# The old rule: the text of section 6 before this model was run, taken literally.
OLD = dict(
    vote_sync=1,    # a vote means "on disk"
    vote_full=1,    # only a full primary votes
    vote_exact=1,   # a vote means "exactly c", not "a tombstone"
    vote_all=1,     # every primary votes; 0: those that seem to be up
    bucket_n=1,     # the bucket's n; 0: the n of a request
    ask='all',      # who is asked the second question: all, primaries, none
    ask_down=1,     # a member that is down must answer too
    ask_late=1,     # the second question comes after the votes
    ask_open=('get', 'push', 'owe', 'fill'),  # work that makes a member answer no
    ask_sync=0,     # a member syncs before it answers
    ask_fence=0,    # a member that answers refuses what was read before its answer
    ask_birth=0,    # the same, told by the age of the message
    still_exact=1,  # a removal checks that the tombstone is still c
    memory=L,       # how long (key, c) is remembered after a removal
    from_c=1,       # a put begins from the remembered c
    age=L,          # age at which a message is refused
    dies=1,         # messages and work die with the connection of their receiver
    fence=0,        # a removal refuses what was read before it
    capture='start',# work notes the counters of its receivers at its start, before it reads, or when it sends
    reread=1,       # what was refused is read again before it is sent again
    repair_others=1,# a read repairs stand-ins too
    resend_others=1,# a stand-in sends again to a stand-in that refused
    others_sync=0,  # a stand-in syncs what it coordinates before it sends it to a stand-in
    fence_boot=1,   # a fence holds across a restart, because the boot number is part of it
    live=1,         # a reader prefers a live value to a concurrent tombstone
    floor=1,        # the durable floor of time: 1 of last_write_wins, 2 of all buckets without siblings
    floor_asked=0,  # whoever is asked raises the floor, too
    untimed=0,      # a tombstone first loses its time at all primaries, in a round of its own
    untimed_sync=1, # the second round begins with a vote, which is synced
    untimed_ask=1,  # the second round asks the others again
    untimed_vote=1, # the second round asks for votes
    untimed_fence=1,# a tombstone loses its time behind a fence
    reduce='same',  # who holds a value that a tombstone hides writes the tombstone anew, with its
                    # own time (same), with the present time (now), or not at all (none)
    forward_once=1, # a forwarded put is never tried twice, and never executed late
)
# The old rule with what it lacks.
AGED = dict(OLD, ask_sync=1, ask_birth=1, repair_others=0, resend_others=0, others_sync=1)
# The rule of section 6 now.
NEW = dict(OLD, ask='others', ask_open=(), ask_sync=1, ask_fence=1, memory=0, age=0, dies=0, fence=1,
           from_c=0, repair_others=0, resend_others=0, others_sync=1, live=0, floor=0, untimed=1)
# The rule before it, in which a reader prefers the living value, and the floor of time in its place.
LIVING = dict(NEW, live=1, floor=1, untimed=0, reduce='none')
FLOORS = dict(NEW, live=0, floor=2, floor_asked=1, untimed=0)

# A tombstone v without its time is ~v. Its own event has both forms, and the later one wins.
def merge(x, y):
    if desc(x[0], y[0]) != desc(y[0], x[0]): return merge_events(x, y)
    o = merge_events(x, y)
    return o[0], {d: min(v, x[1].get(d, v), y[1].get(d, v)) for d, v in o[1].items()}

def number(v): return v if v >= 0 else ~v

class Node(Actors):
    def __init__(s, i):
        super().__init__(i, 'new')
        s.up, s.paused, s.boot, s.full, s.disk, s.floor = True, False, 1, True, None, -99
        s.owed, s.skew, s.removed = set(), 0, set()
        s.start()
    def start(s):           # what a process start forgets
        s.tasks, s.memory, s.known = {}, [], {}
        s.A, s.ctr, s.emin, s.R, s.fence, s.answered = (s.i, s.boot), 0, 0, 0, 0, -1
    def recv(s, o):
        before = s.own(s.obj[0]) if s.obj else (0, 0)
        s.obj = merge(s.obj, o) if s.obj else o
        if s.own(o[0]) > before: s.emin = s.ctr + 1

class Task:
    def __init__(s, kind, node, w, **more):
        w.serial += 1
        s.id, s.kind, s.node, s.birth, s.phase = w.serial, kind, node, w.now, 0
        w.handshakes(node)
        s.caps, s.conns, s.out, s.wait, s.got = dict(node.known), list(w.conn[node.i]), [], set(), {}
        s.caps[node.i] = (node.boot, node.R)
        s.__dict__.update(more)
        s.lazy = w.R.random() < w.lazy / 2
        s.birth_serial = w.serial
        node.tasks[s.id] = s

class Op:
    def __init__(s, tomb, seen):
        s.tomb, s.seen, s.acked, s.dots, s.after = tomb, set(seen), False, [], set()
        s.begun, s.root = 0, None   # root: of a tombstone that was written anew, the number of the first one

class World:
    node = Node
    def __init__(w, seed, rule, steps):
        w.R, w.rule, w.steps = random.Random(seed), rule, steps
        w.R2 = random.Random(seed + 1)  # decides about wiped disks and versions from elsewhere
        R = w.R
        w.now = w.serial = 0
        w.N = [w.node(i) for i in range(5)]
        w.n = R.choice((3, 3, 3, 2))
        w.mode = R.choice(('siblings', 'siblings', 'newest', 'lww'))
        w.conn = [[0] * 5 for _ in range(5)]
        w.cut, w.held, w.msgs, w.log = set(), set(), [], []
        w.ops, w.ts, w.excused, w.reaped, w.contexts = [], {}, set(), set(), []
        w.rounds = {}           # of a tombstone that was reaped, when the first round began that touched it
        w.lazy = R.choice((0, 0, .1, .3))
        w.lazy_removal = R.choice((0, 0, .5))
        w.doubt = R.choice((.02, .1, .4))
        w.syncs = R.choice((0, .3, .8))
        skew = R.choice((0, 0, 20, 100))
        for x in w.N: x.skew = R.choice((0, -skew, skew))
        w.foreign, w.wipes = w.R2.choice((0, 0, .2)), w.R2.choice((0, 0, .1))
        w.stat = dict.fromkeys(('removals', 'refused'), 0)
    def say(w, *a): w.log.append(' '.join(str(x) for x in a))
    def prim(w, x): return x.i < w.n
    # --- what exchange.py adds ---
    def heard(w, d, src, more): pass
    def answer(w, d, src, kind, data): raise ValueError(kind)
    def order(w, t): return t.o, t.birth_serial
    def healed(w): pass
    def more(w): pass
    def last_resort(w, x): w.get(x)
    # --- objects ---
    def tombs(w, o): return o is not None and all(w.ops[number(v)].tomb for v in o[1].values())
    def timed(w, o): return w.rule['untimed'] and any(v >= 0 for v in o[1].values())
    def newest(w, o):       # the event that a reader of a bucket without siblings shows
        def key(d):
            tomb = w.ops[number(o[1][d])].tomb
            time = -999 if o[1][d] < 0 else w.ts[d]
            return (not tomb, time, d) if w.mode == 'newest' and w.rule['live'] else (time, not tomb, d)
        return max(o[1], key=key)
    def hidden(w, o):       # a value that is there, and that a tombstone hides
        return o and w.mode != 'siblings' and not w.tombs(o) and w.ops[number(o[1][w.newest(o)])].tomb
    def show(w, o):
        if o is None: return 'nothing'
        name = lambda v: 't%d without its time' % ~v if v < 0 else ('t%d' if w.ops[v].tomb else 'v%d') % v
        return '+'.join(name(v) for _, v in sorted(o[1].items(), key=str)) \
            + ' {' + ' '.join('%s%d.%d:%d' % (NAMES[a[0]], a[1], a[2], c) for a, c in sorted(o[0].items())) + '}'
    # --- connections and messages ---
    def reset(w, i, j):
        w.conn[i][j] += 1; w.conn[j][i] += 1
    def handshakes(w, x):   # a new connection tells the boot number and the counter of removals
        for y in w.N:
            here, there = x.known.get(y.i), (x.i, y.i) not in w.cut and (y.i, x.i) not in w.cut
            if (not here or here[0] != y.boot) and there and y.up and not y.paused: x.known[y.i] = (y.boot, y.R)
    def send(w, src, dst, kind, task, data=None, cap=None, birth=None):
        w.msgs.append((src, dst, w.conn[src][dst], w.now if birth is None else birth, kind, task, data, cap,
                       w.R.random() < (w.lazy_removal if kind == 'remove' else w.lazy)))
    def alive(w, m):        # can this message still arrive?
        return m[2] == w.conn[m[0]][m[1]] or not w.rule['dies'] and m[4] == 'put'
    def ready(w, m):
        d = w.N[m[1]]
        return d.up and not d.paused and (m[0], m[1]) not in w.cut and (m[0], m[1], m[4]) not in w.held
    def flush(w, t):        # sends one waiting message of a task
        n = t.node
        k = next((k for k, o in enumerate(t.out) if (n.i, *o[:2]) not in w.held), 0)
        dst, kind, data, cap, birth = t.out.pop(k)
        if dst == n.i:
            if kind == 'remove': w.remove(n, data)
            return
        if w.rule['dies'] and kind == 'put' and t.conns[dst] != w.conn[n.i][dst]:
            t.wait.discard(dst); return
        if w.rule['capture'] == 'send': w.handshakes(n); cap = n.known.get(dst)
        w.send(n.i, dst, kind, t.id, data, cap, birth)
    def flush_to(w, t, pair):
        t.out.sort(key=lambda o: (t.node.i, *o[:2]) != pair)
        held, w.held = w.held, set()
        w.flush(t)
        w.held = held
    def queue(w, t, dst, kind, data=None, fresh=False):
        if fresh: t.conns[dst] = w.conn[t.node.i][dst]
        t.out.append((dst, kind, data, t.caps.get(dst), w.now if fresh else t.birth))
        if kind != 'remove': t.wait.add(dst)
    def deliver(w, m):
        src, dst, _, birth, kind, task, data, cap, _ = m
        d = w.N[dst]
        if kind == 'reply':
            status, answer, counter = data[:3]
            w.heard(d, src, data[3:])
            known = d.known.get(src)
            if known is None or counter > known: d.known[src] = counter
            t = d.tasks.get(task)
            if t and src in t.wait: w.reply(t, src, status, answer, counter)
            return
        if kind == 'forward':
            if not w.rule['forward_once'] or w.now - birth <= FORWARD_MAX: w.coordinate(d, *data)
            else: w.say(NAMES[dst], 'refuses a forwarded put of age', w.now - birth)
            return
        answer = None
        if kind == 'put':
            status = w.accept(d, data, birth, cap, 'from ' + NAMES[src])
            if status == 'ok' and src >= w.n: d.disk = d.obj
            answer = data[0]
        elif kind == 'get': status, answer = 'ok', d.obj
        elif kind == 'vote': status, answer = w.vote(d, data)
        elif kind == 'ask': status = w.clean(d, birth, data)
        elif kind == 'remove': w.remove(d, data); return
        else: status, answer = w.answer(d, src, kind, data)
        w.send(dst, src, 'reply', task, (status, answer, (d.boot, d.R)))
    def accept(w, d, o, birth, cap, where):     # the only way for a copy into a store
        if w.rule['age'] and w.now - birth > w.rule['age']: return 'old'
        if w.rule['ask_birth'] and birth <= d.answered: return 'old'
        if w.rule['fence']:
            if cap is None or w.rule['fence_boot'] and cap[0] != d.boot or cap[1] < d.fence:
                w.stat['refused'] += 1
                return 'stale'
        if any(w.now <= until and desc(c, o[0]) for c, until in d.memory): return 'ok'
        before = d.obj
        d.recv(o)
        if w.R.random() < w.syncs: d.disk = d.obj
        if d.obj != before: w.say(NAMES[d.i], 'stores', w.show(o), where, '-> ' + w.show(d.obj) if before else '')
        return 'ok'
    # --- clients ---
    def places(w, x):       # the nodes that stand at the key's positions, as node x sees it
        def seems_up(i):
            y = w.N[i]
            ok = y.up and not y.paused and (x.i, i) not in w.cut
            return i == x.i or ok and (i >= w.n or w.R.random() >= w.doubt) or not ok and w.R.random() < w.doubt / 4
        up = [i for i in range(5) if seems_up(i)]
        spare = [i for i in up if i >= w.n]
        return [i if i in up else spare.pop(0) if spare else i for i in range(w.n)]
    def write(w, tomb):
        R = w.R
        x = R.choice(w.N)
        if not x.up or x.paused: return
        seen, ctx = set(), {}
        if w.contexts and R.random() < .3: ctx, seen = R.choice(w.contexts)
        elif R.random() < (.95 if tomb else .5):
            y = w.N[R.choice(w.places(x))]
            if y.up and not y.paused and y.obj: ctx, seen = y.obj[0], set(map(number, y.obj[1].values()))
        if tomb and not any(not w.ops[v].tomb for v in seen): return
        op = Op(tomb, seen)
        w.ops.append(op)
        args = (len(w.ops) - 1, ctx, R.choice((1, 2, 2, 2)))
        if not tomb and w.R2.random() < w.foreign: args += (w.now - w.R2.choice((0, 10, 100)),); op.seen = set()
        places = w.places(x)
        if x.i in places: w.coordinate(x, *args)
        else:
            to = R.choice(places)
            w.send(x.i, to, 'forward', None, args)
            if not w.rule['forward_once'] and R.random() < .5:
                to = R.choice(places)
                w.send(x.i, to, 'forward', None, args)
    def coordinate(w, x, v, ctx, quorum, time=None):
        op, places = w.ops[v], w.places(x)
        if x.i not in places: return
        t = Task('put', x, w, quorum=min(quorum, w.n), op=op, acks=1)
        if x.obj is None and w.rule['from_c']:
            for c, until in x.memory:
                if w.now <= until: ctx = {**c, **{k: max(n, c.get(k, 0)) for k, n in ctx.items()}}
        stamp = w.now + x.skew
        if x.obj: stamp = max([stamp] + [w.ts[d] + 1 for d, u in x.obj[1].items() if u >= 0])
        if w.has_floor(): stamp = max(stamp, x.floor + 1)
        w.serial += 1
        if time is not None:    # a version from elsewhere keeps its event and its time
            dot = ((5, 0, v), 1)
            w.ts[dot] = time
            x.recv(({dot[0]: 1}, {dot: v}))
            t.obj = x.obj
            w.say('client', 'puts a version of time', time, 'through', NAMES[x.i], '->', w.show(x.obj))
            return w.send_out(x, t, dot, places)
        if w.mode != 'siblings' and x.obj:
            op.seen |= {number(u) for u in x.obj[1].values()} - {v}
            x.obj = (x.obj[0], {})
        old = x.obj and set(x.obj[1])
        t.obj = x.coord(ctx, v)
        dot = next(d for d, u in x.obj[1].items() if u == v and d not in (old or ()))
        w.ts[dot] = stamp
        w.say('client', 'deletes' if op.tomb else 'puts', 'through', NAMES[x.i], '->', w.show(x.obj))
        w.send_out(x, t, dot, places)
    def send_out(w, x, t, dot, places):
        op = t.op
        op.dots.append(dot)
        op.after |= x.removed if w.mode == 'lww' and not w.rule['untimed'] else w.reaped
        op.begun = w.serial
        if x.i >= w.n and w.rule['others_sync'] and any(i >= w.n and i != x.i for i in places): x.disk = x.obj
        for i in places:
            if i != x.i: w.queue(t, i, 'put', t.obj)
        w.acked(t)
    def has_floor(w): return w.rule['floor'] and w.mode == 'lww' or w.rule['floor'] == 2 and w.mode == 'newest'
    def reduce(w, x):       # a primary writes a tombstone that hides a value anew, and owes it to the others
        if w.rule['reduce'] == 'none' or not w.prim(x) or not w.hidden(x.obj): return
        top = w.newest(x.obj)
        t = number(x.obj[1][top])
        op = Op(True, map(number, x.obj[1].values()))
        op.acked, op.root = True, t if w.ops[t].root is None else w.ops[t].root
        w.ops.append(op)
        stamp = w.ts[top] if w.rule['reduce'] == 'same' else max(w.now + x.skew, w.ts[top] + 1)
        clock = x.obj[0]
        x.obj = (clock, {})
        x.coord(clock, len(w.ops) - 1)
        dot = next(iter(x.obj[1]))
        w.ts[dot] = stamp
        op.dots.append(dot)
        x.owed |= set(range(w.n)) - {x.i}
        w.serial += 1
        op.begun = w.serial
        w.say(NAMES[x.i], 'writes anew what hides a value ->', w.show(x.obj))
    def acked(w, t):
        if t.acks >= t.quorum and not t.op.acked: t.op.acked = True
    # --- work of a node ---
    def get(w, x):
        t = Task('get', x, w)
        t.got[x.i] = x.obj
        t.places = w.places(x)
        for i in t.places:
            if i != x.i: w.queue(t, i, 'get')
    def push(w, x):         # a stand-in gives the primaries what it holds for them
        if w.prim(x) or not x.obj or any(t.kind == 'push' for t in x.tasks.values()): return
        t = Task('push', x, w, obj=x.obj)
        for i in range(w.n): w.queue(t, i, 'put', x.obj)
    def owe(w, x):
        if not x.obj: x.owed.clear()
        if not x.owed or any(t.kind == 'owe' for t in x.tasks.values()): return
        t = Task('owe', x, w, obj=x.obj)
        for i in sorted(x.owed): w.queue(t, i, 'put', x.obj)
    def fill(w, x):
        if x.full or any(t.kind == 'fill' for t in x.tasks.values()): return
        t = Task('fill', x, w)
        for i in range(w.n):
            if i != x.i: w.queue(t, i, 'get')
    def close(w, t):        # a task ends; what is in flight stays in flight
        n = t.node
        if n.tasks.pop(t.id, None) is None: return
        if t.kind == 'put' and w.prim(n): n.owed |= {i for i in t.wait if i < w.n}
        if t.kind == 'put' and w.prim(n): n.owed |= {i for i in range(w.n) if i not in t.got and i != n.i}
    def reply(w, t, src, status, answer, counter):
        n, y = t.node, w.N[src]
        t.wait.discard(src)
        if status == 'stale' and t.kind in ('put', 'owe'):      # read again, and send again
            t.caps[src] = counter
            if n.i >= w.n and src >= w.n and not w.rule['resend_others']: return
            if n.obj or not w.rule['reread']:
                if w.rule['reread']: t.obj = n.obj
                w.queue(t, src, 'put', t.obj, True)
            else: t.got[src] = 1
        elif t.kind == 'put':
            if status == 'ok': t.got[src] = 1; t.acks += 1; w.acked(t)
        elif t.kind == 'get':
            if t.phase == 0:
                t.got[src] = answer
                if not t.wait or len(t.got) >= 2 and w.R.random() < .4: w.repair(t)
        elif t.kind == 'push':
            if status == 'ok': t.got[src] = 1
            if len(t.got) == w.n:
                if n.obj and n.obj[0] == t.obj[0]: n.obj = None; w.say(NAMES[n.i], 'drops its proven copy')
                w.close(t); return
        elif t.kind == 'owe':
            if status == 'ok' and n.obj and answer == n.obj[0]: n.owed.discard(src)
        elif t.kind == 'fill':
            if answer: status = w.accept(n, answer, t.birth, t.caps[n.i], 'from ' + NAMES[src])
            if status != 'ok': w.close(t); return
            if n.obj and not (answer and desc(answer[0], n.obj[0])): n.owed.add(src)
            t.got[src] = 1
            if len(t.got) == w.n - 1: n.full = True; w.close(t); return
        elif t.kind == 'reap': w.reap_reply(t, src, status, answer); return
        if not t.wait and not t.out: w.close(t)
    def repair(w, t):
        t.phase = 1
        t.wait.clear()
        o = None
        for x in t.got.values():
            if x: o = merge(o, x) if o else x
        if not o: w.close(t); return
        w.contexts.append((o[0], set(map(number, o[1].values()))))
        for i, x in t.got.items():
            if i >= w.n and (x is None or not w.rule['repair_others']) or x and merge(x, o) == x: continue
            if i == t.node.i: w.accept(t.node, o, t.birth, t.caps[i], 'by a repair')
            else: w.queue(t, i, 'put', o)
        if not t.out: w.close(t)
    # --- reaping ---
    def vote(w, d, o):
        if not w.prim(d): return 'no', None
        if w.rule['vote_full'] and not d.full: return 'no', None
        if not d.obj or not w.tombs(d.obj) or w.rule['vote_exact'] and d.obj != o: return 'no', d.obj
        if w.rule['vote_sync'] and (w.timed(o) or w.rule['untimed_sync'] or not w.rule['untimed']): d.disk = d.obj
        return 'yes', d.obj
    def clean(w, d, asked, o):
        if any(t.kind in w.rule['ask_open'] and t.birth <= asked for t in d.tasks.values()): return 'no'
        if not w.prim(d) and d.obj: return 'no'
        if w.rule['ask_sync']: d.disk = d.obj
        d.answered = w.now
        if w.rule['ask_fence']: d.R += 1; d.fence = d.R
        if w.has_floor() and w.rule['floor_asked'] and o: d.floor = max([d.floor] + [w.ts[x] for x in o[1]])
        return 'yes'
    def reap(w, x):
        if not w.prim(x) or not w.tombs(x.obj) or any(t.kind == 'reap' for t in x.tasks.values()): return
        n = w.n if w.rule['bucket_n'] else w.R.randint(1, w.n)
        voters = [i for i in range(n)]
        if not w.rule['vote_all']:
            voters = [i for i in voters if w.N[i].up and not w.N[i].paused and not {(x.i, i), (i, x.i)} & w.cut]
        t = Task('reap', x, w, c=x.obj[0], o=x.obj, voters=voters)
        w.say(NAMES[x.i], 'begins to reap', w.show(x.obj))
        if not w.timed(x.obj) and not w.rule['untimed_vote']: t.voters = []
        if w.rule['ask_late']: w.ask_votes(t)
        else: w.ask_members(t)
    def ask_votes(w, t):
        t.phase = 1
        n = t.node
        for i in t.voters:
            if i != n.i: w.queue(t, i, 'vote', t.o, True)
        if n.i in t.voters and w.vote(n, t.o)[0] == 'no': w.close(t)
        elif not t.wait: w.next_phase(t)
    def ask_members(w, t):
        t.phase = 2
        n, who = t.node, {'all': range(5), 'primaries': range(w.n), 'others': range(w.n, 5), 'none': ()}[w.rule['ask']]
        if not w.timed(t.o) and w.rule['untimed'] and not w.rule['untimed_ask']: who = ()
        for i in who:
            y = w.N[i]
            if not w.rule['ask_down'] and (not y.up or y.paused or {(n.i, i), (i, n.i)} & w.cut): continue
            if i != n.i: w.queue(t, i, 'ask', t.o, True)
            elif any(u.kind in w.rule['ask_open'] for u in n.tasks.values() if u is not t): w.close(t); return
        if not t.wait: w.next_phase(t)
    def reap_reply(w, t, src, status, answer):
        if status != 'yes':
            # A primary without the tombstone gets it again, so that a later round ends.
            if t.phase == 1 and not (answer and desc(answer[0], t.c)): t.node.owed.add(src)
            elif t.phase == 1 and answer and answer[0] == t.c and answer != t.o: w.get(t.node)
            w.close(t)
        elif not t.wait and not t.out: w.next_phase(t)
    def next_phase(w, t):
        order = (1, 2) if w.rule['ask_late'] else (2, 1)
        if t.phase == order[0]: (w.ask_members if order[1] == 2 else w.ask_votes)(t)
        else:
            t.phase = 3
            w.say(NAMES[t.node.i], 'has all answers and sends the removal')
            to = list(range(w.n)); w.R.shuffle(to)
            for i in to: w.queue(t, i, 'remove', w.order(t))
    def remove(w, d, data):
        o, begun = data[:2]
        c = o[0]
        if not d.obj or not w.tombs(d.obj) and w.rule['still_exact']: return
        if w.rule['still_exact'] and d.obj != o: return
        for v in map(number, o[1].values()): w.rounds.setdefault(v, begun)
        if w.timed(o):
            d.obj = (d.obj[0], {x: min(v, ~v) if w.ops[number(v)].tomb else v for x, v in d.obj[1].items()})
            w.say(NAMES[d.i], 'takes the time from', w.show(d.obj))
            if w.rule['untimed_fence']: d.R += 1; d.fence = d.R
            return
        w.say(NAMES[d.i], 'removes', w.show(d.obj))
        w.stat['removals'] += 1
        gone = {v for v, op in enumerate(w.ops) for a, e in op.dots if c.get(a, 0) >= e}
        w.reaped |= gone; d.removed |= gone
        # What the tombstone's clock covers was deleted for good: a fault is no excuse any more.
        if w.has_floor(): d.floor = max([d.floor] + [w.ts[x] for x in d.obj[1]])
        if w.rule['memory']: d.memory.append((c, w.now + w.rule['memory']))
        d.R += 1; d.fence = d.R
        d.obj = None
    # --- faults ---
    def kill(w, x, machine):
        if not x.up: return
        w.say(NAMES[x.i], 'loses power' if machine else 'is killed')
        x.up = x.paused = False
        if machine:
            def holds(o, v): return o and any(o[0].get(d[0], 0) >= d[1] for d in w.ops[v].dots)
            others = [o for y in w.N if y is not x for o in (y.obj, y.disk)] + [x.disk]
            for v in range(len(w.ops)):
                if v not in w.reaped and holds(x.obj, v) and not any(holds(o, v) for o in others): w.excused.add(v)
            if x.obj != x.disk: w.say('  it comes back with', w.show(x.disk))
            x.obj = x.disk
            if w.prim(x): x.full = False
        x.boot += 1
        x.start()
        for j in range(5):
            if j != x.i: w.reset(x.i, j)
        if w.prim(x): x.owed = set(range(w.n)) - {x.i}
    def wipe(w, x):
        w.say(NAMES[x.i], 'loses its disk')
        x.up, x.disk = True, None
        held = lambda o, v: o and any(o[0].get(d[0], 0) >= d[1] for d in w.ops[v].dots)
        w.excused |= {v for v in range(len(w.ops)) if v not in w.reaped and held(x.obj, v)
                      and not any(held(y.obj, v) for y in w.N if y is not x)}
        w.kill(x, True)
        x.floor, x.removed, x.up = -99, set(), True
    def fault(w, weights):
        R, x = w.R, w.R.choice(w.N)
        f = R.choices(('restart', 'power', 'pause', 'cut', 'heal', 'reset', 'wait'), weights)[0]
        if f in ('restart', 'power'):
            if x.up:
                w.kill(x, f == 'power')
                if R.random() < .5: x.up = True
            else: x.up = True; w.say(NAMES[x.i], 'starts')
        elif f == 'pause':
            x.paused = x.up and not x.paused
            w.say(NAMES[x.i], 'is paused' if x.paused else 'runs on')
        elif f == 'cut':
            y = R.choice(w.N)
            w.cut.add((x.i, y.i))
            if R.random() < .5: w.cut.add((y.i, x.i))
        elif f == 'heal': w.cut.clear()
        elif f == 'reset':
            y = R.choice(w.N)
            if x is not y: w.reset(x.i, y.i)
        else: w.now += R.choice((5, L // 3, L + 5)); w.say('time passes, now', w.now)
    # --- the history ---
    def burst(w, count, lazy=False):
        R = w.R
        for _ in range(count):
            w.now += R.random() < .2
            ts = [t for x in w.N if x.up and not x.paused for t in x.tasks.values() if t.out and (lazy or not t.lazy)
                  and any((t.node.i, *o[:2]) not in w.held for o in t.out)]
            if ts and R.random() < .6: w.flush(R.choice(ts)); continue
            ms = [k for k, m in enumerate(w.msgs) if (lazy or not m[8]) and w.ready(m)]
            if not ms:
                if not ts: return False
                continue
            k = R.choice(ms)
            m = w.msgs[k]
            if R.random() > .05 or m[4] == 'forward' or not w.alive(m): w.msgs[k] = w.msgs[-1]; w.msgs.pop()
            if w.alive(m): w.deliver(m)
        return True
    def settle(w, x):
        w.reduce(x); w.fill(x); w.push(x); w.owe(x)
    def run(w):
        R = w.R
        weight = lambda *a: R.choice(a)
        faults = [weight(0, 1, 2), weight(0, 1, 2), weight(0, 1, 2), weight(0, 1, 1), 1, weight(0, 1), weight(0, 1, 2)]
        names = ('burst', 'put', 'delete', 'get', 'settle', 'reap', 'sync', 'close', 'fault', 'lazy', 'recover')
        ws = [1, weight(.3, 1, 2), weight(.5, 1, 2), weight(0, .5, 1), weight(.5, 1, 2), weight(1, 2, 3),
              weight(0, .5, 1), weight(0, .3), weight(.5, 1.5, 3), weight(.2, .7), weight(.1, .5)]
        w.write(False)
        w.burst(R.choice((0, 5, 20)))
        actions = R.choices(names, ws, k=w.steps)
        if R.random() < .6:     # most histories that fail have this order, with other actions between
            order = ['fault', R.choice(('put', 'fault')), 'put', R.choice(('get', 'settle', 'fault', 'lazy')), 'recover',
                     R.choice(('get', 'burst', 'settle')), 'delete', R.choice(('sync', 'settle', 'fault')), 'recover',
                     'settle', R.choice(('reap', 'settle')), 'reap', R.choice(('fault', 'lazy', 'put')), R.choice(('fault', 'put')),
                     R.choice(('lazy', 'settle', 'put', 'reap')), R.choice(('lazy', 'settle', 'fault'))]
            order = [a for a in order if R.random() < .85]
            for a in actions[:w.steps // 3]: order.insert(R.randrange(len(order) + 1), a)
            actions = order
        for action in actions:
            w.now += 1
            w.more()
            if w.R2.random() < w.wipes: w.wipe(w.N[w.R2.randrange(w.n)])
            x = R.choice(w.N)
            if action == 'burst': w.burst(R.choice((1, 3, 8, 20, 40)))
            elif action in ('put', 'delete'): w.write(action == 'delete'); w.burst(R.choice((0, 2, 8, 20)))
            elif action == 'fault': w.fault(faults)
            elif action == 'lazy': w.burst(R.choice((1, 1, 4)), True)
            elif action == 'recover':
                if R.random() < .5: w.cut.clear()
                for y in w.N:
                    if R.random() < .7: y.up, y.paused = True, False
            elif action == 'settle':
                for y in w.N:
                    if y.up and not y.paused: w.settle(y)
                w.burst(R.choice((20, 60)))
            elif action == 'reap':
                x = w.N[R.randrange(w.n)]
                if x.up and not x.paused: w.reap(x); w.burst(R.choice((0, 10, 30, 60)))
            elif not x.up or x.paused: continue
            elif action == 'sync': x.disk = x.obj
            elif action == 'close':
                if x.tasks: w.close(R.choice(list(x.tasks.values())))
            else: w.get(x); w.burst(R.choice((0, 4, 10, 20)))
        w.heal(False)
        if R.random() < .5: w.now += 2 * L; w.say('time passes, now', w.now)
        w.say('late messages arrive')
        return w.heal(True)
    def heal(w, lazy):
        w.say('all faults end')
        w.cut.clear()
        for x in w.N: x.up, x.paused = True, False
        w.healed()
        bad = None
        for turn in range(60):
            w.burst(400, lazy)
            w.now += 1
            for x in w.N:
                for t in list(x.tasks.values()):
                    if turn % 2 and not t.out: w.close(t)
            bad = next(filter(None, (('%s has foreign data' % NAMES[x.i] if not w.prim(x) and x.obj else
                                      '%s is not full' % NAMES[x.i] if not x.full else
                                      '%s owes' % NAMES[x.i] if x.owed else
                                      '%s has a tombstone' % NAMES[x.i] if w.tombs(x.obj) else
                                      '%s holds a value that is hidden' % NAMES[x.i] if w.hidden(x.obj) else
                                      'unequal' if x.obj != w.N[0].obj and w.prim(x) else None) for x in w.N)), None)
            if not bad and not any(x.tasks for x in w.N): break
            for x in w.N: w.settle(x)
            # One read repairs what no mark knows: a tombstone that a value met after its removal elsewhere.
            if turn % 4 == 3: w.last_resort(w.N[w.R.randrange(w.n)])
            elif turn % 4 == 1: w.reap(w.N[w.R.randrange(w.n)])
        return w.check(bad) if lazy else bad
    def check(w, bad):
        final = None
        for x in w.N:
            if x.obj: final = merge(final, x.obj) if final else x.obj
        alive = set(map(number, final[1].values())) if final else set()
        time = lambda v: max(w.ts[d] for d in w.ops[v].dots)
        # What is written anew replaces the values that its tombstone may hide, and no others.
        def may_hide(op, v): return op.root is None or op.root not in w.ops[v].after and time(v) <= time(op.root)
        seen = {v for op in w.ops for v in op.seen if w.ops[v].tomb or not w.ops[v].dots or may_hide(op, v)}
        for v, op in enumerate(w.ops):
            if op.tomb: continue
            if v in alive:
                for u, by in enumerate(w.ops):
                    if by.acked and u not in w.excused and v in by.seen and u != v:
                        if u in w.reaped: return 'RETURNED: v%d, which t%d deleted' % (v, u)
                        return 'RETURNED (never reaped): v%d, which %d replaced' % (v, u)
            elif op.acked and v not in seen and v not in w.excused: return 'LOST: v%d' % v
        top = number(final[1][w.newest(final)]) if final and w.mode != 'siblings' else None
        if top is not None and w.ops[top].tomb:
            for v in alive:
                root = top if w.ops[top].root is None else w.ops[top].root
                if not w.ops[v].tomb and w.ops[v].acked and root in w.ops[v].after: return 'HIDDEN: v%d by t%d' % (v, top)
        elif top is not None:
            # A newer deletion, which nobody has replaced, hides what was written before its first round.
            for u, by in enumerate(w.ops):
                if by.tomb and by.acked and u not in w.excused and not any(u in op.seen for op in w.ops) \
                        and time(u) > time(top) and w.ops[top].begun < w.rounds.get(u, w.serial + 1) and u not in w.ops[top].after:
                    return 'RETURNED (older): v%d, although t%d is newer' % (top, u)
        return bad and 'not live: ' + bad

# Histories that were found by hand. Each shows what one sentence of the rule prevents, and is too
# rare for the random ones. Words: "put X" and "delete X" coordinate at X; a deletion has seen what X
# holds. "hold X>Y kind" holds messages back until "free X>Y kind"; "send X>Y kind" takes them out of
# X's memory meanwhile, and "lose X>Y kind" loses the last one. "all" does everything else.
SCRIPTS = dict(
    ask_late="""pause C, put B, send B>D put, hold B>D put, all, run C, hold A>B put, hold A>B vote, delete A, all,
        reap A, all, read B>D put, free A>B put, all, free A>B vote, all, free B>D put""",
    vote_exact="""hold B>A put, hold B>C put, put B, delete B, hold A>B put, put A, send A>B put, all, delete A, all,
        send A>B put, lose A>B put, close A, reap A, all, free A>B put""",
    resend_others="""pause A, pause B, hold D>E put, put D, send D>E put, all, run A, run B, delete C, all,
        hold C>D ask, reap C, all, read D>E put, push D, all, free C>D ask, all, free D>E put""",
    repair_others="""pause A, pause B, hold D>E put, put D, all, run A, run B, delete C, all, hold C>D ask, reap C, all,
        pause A, pause B, hold E>C put, hold E>D put, hold E>C get, put E, get E, all, repair E, run A, run B,
        push D, all, free C>D ask, all""",
    others_sync="""pause A, pause B, hold D>E put, put D, all, sync D, run A, run B, delete C, all, hold C>D ask, reap C,
        all, pause A, pause B, get D, all, hold D>C put, put D, send D>E put,
        power D, start D, run A, run B, free D>C put,
        push D, all, free C>D ask, all, free D>E put""",
    # A put v0 alone, and B deleted what it held. Later A meets the tombstone.
    live="""mode newest, hold A>B put, hold A>C put, put A, close A, skew B 5, put B, hold B>A put, delete B, all,
        get A, all""",
    untimed_vote="""mode newest, put A, all, skew B 100, delete B, all, hold A>B remove, reap A, all, close A, reap A, all, close A, put A, all""",
    untimed_sync="""mode newest, put A, all, skew B 100, delete B, all, reap A, all, close A, hold A>B remove, reap A, all, close A, power B,
        start B, put A, all""",
    untimed_ask="""mode newest, put A, all, skew B 100, pause C, hold B>D put, delete B, send B>D put, all, run C, get A, all,
        hold A>B remove, reap A, all, read B>D put, free B>D put, all, free A>B remove, all, close A,
        reap A, all, close A, put A, all, push D, all""",
    reduce="""mode newest, hold A>B put, hold A>C put, put A, close A, skew B 5, put B, hold B>A put, hold B>C put, delete B, all,
        skew C 50, hold C>A put, hold C>B put, put C, all, close C, close B, skew A 100, owe B, free B>A put, all, reduce A, all""",
    wiped="""mode newest, put A, all, skew B 100, delete B, all, reap A, all, close A, hold A>B remove, reap A, all, close A, wipe A, put A, all""",
    imported="""mode newest, put A, all, skew B 100, delete B, all, reap A, all, close A, hold A>B remove, reap A, all, close A, import A, all""",
)
# The same for a rule that removes in its first round.
SCRIPTS.update({name + ' at once': SCRIPTS[name].replace('reap A, all, close A, hold', 'hold') for name in ('wiped', 'imported')})

def script(rule, text, make=World):
    w = make(0, rule, 0)
    w.n, w.mode, w.lazy, w.lazy_removal, w.doubt, w.syncs, w.foreign, w.wipes = 3, 'siblings', 0, 0, 0, 0, 0, 0
    for x in w.N: x.skew = 0
    for line in text.split(','):
        verb, name, *kind = line.split() + [''] * (len(line.split()) < 2)
        if verb == 'all':
            while w.burst(50): pass
            continue
        if verb == 'mode': w.mode = name; continue
        x = w.N[NAMES.index(name[0])]
        if kind and verb != 'skew': pair = (x.i, NAMES.index(name[2]), kind[0])
        if verb in ('pause', 'run'): x.paused = verb == 'pause'; w.say(NAMES[x.i], 'is paused' if x.paused else 'runs on')
        elif verb == 'put': w.ops.append(Op(False, ())); w.coordinate(x, len(w.ops) - 1, {}, 1)
        elif verb == 'import': w.ops.append(Op(False, ())); w.coordinate(x, len(w.ops) - 1, {}, 1, -50)
        elif verb == 'delete':
            w.ops.append(Op(True, map(number, x.obj[1].values()))); w.coordinate(x, len(w.ops) - 1, x.obj[0], 1)
        elif verb == 'hold': w.held.add(pair)
        elif verb == 'free': w.held.discard(pair)
        elif verb == 'send':
            for t in list(x.tasks.values()):
                while any((x.i, *o[:2]) == pair for o in t.out): w.flush_to(t, pair)
        elif verb == 'read':     # delivers a held message; what the sender answers to a refusal is held in turn
            k = next(k for k, m in enumerate(w.msgs) if (m[0], m[1], m[4]) == pair)
            w.deliver(w.msgs.pop(k))
            while w.burst(50): pass
            for t in list(x.tasks.values()):
                while any((x.i, *o[:2]) == pair for o in t.out): w.flush_to(t, pair)
        elif verb == 'lose':
            for k in [k for k, m in enumerate(w.msgs) if (m[0], m[1], m[4]) == pair][-1:]: del w.msgs[k]
        elif verb == 'close':
            for t in list(x.tasks.values()): w.close(t)
        elif verb == 'repair':
            for t in list(x.tasks.values()):
                if t.kind == 'get' and t.phase == 0: w.repair(t)
        elif verb == 'skew': x.skew = int(kind[0])
        elif verb == 'sync': x.disk = x.obj
        elif verb == 'power': w.kill(x, True)
        elif verb == 'start': x.up = True
        else: getattr(w, verb)(x)
    w.held.clear()
    w.burst(400)
    w.heal(False)
    return w.heal(True), w

def run(seed, rule, steps):
    w = World(seed, rule, steps)
    return w.run(), w

# A changed rule: its name, the rule, what is changed, and a seed or a script whose history fails.
# A second round repeats the questions of the first, so some changes show only where there is one.
ROWS = [
    ('the rule', NEW, {}, None),
    ('a vote is not synced', NEW, dict(vote_sync=0), 3877),
    ('a filling primary may vote', NEW, dict(vote_full=0), None),
    ('any tombstone counts as a vote for c', LIVING, dict(vote_exact=0), 'vote_exact'),
    ('only the primaries that are up vote', LIVING, dict(vote_all=0), None),
    ('n comes from the request', NEW, dict(bucket_n=0), 3423),
    ('the others are not asked', NEW, dict(ask='none'), 7048),
    ('a member that is down need not answer', NEW, dict(ask_down=0), 3773),
    ('the others are asked before the votes', LIVING, dict(ask_late=0), 'ask_late'),
    ('an answer is not synced', LIVING, dict(ask_sync=0), 8965),
    ('an answer raises no fence', NEW, dict(ask_fence=0), 7537),
    ('a removal does not compare the copy', NEW, dict(still_exact=0), 7266),
    ('no copy is refused', NEW, dict(fence=0), 9137),
    ('the counters are noted when a message is sent', NEW, dict(capture='send'), 9137),
    ('a refused copy is sent again without a new read', NEW, dict(reread=0), 9137),
    ('a fence ignores the boot number', NEW, dict(fence_boot=0), 5231),
    ('a read repairs stand-ins', LIVING, dict(repair_others=1), 'repair_others'),
    ('a stand-in sends again to a stand-in', LIVING, dict(resend_others=1), 'resend_others'),
    ('a stand-in coordinates without a sync', LIVING, dict(others_sync=0), 'others_sync'),
    ('a reader prefers the living value', LIVING, {}, 'live'),
    ('a tombstone is removed with its time', NEW, dict(untimed=0), 1545),
    ('floors of time in place of that, and a disk is lost', FLOORS, {}, 'wiped at once'),
    ('floors of time in place of that, and an import', FLOORS, {}, 'imported at once'),
    ('a tombstone loses its time without a fence', NEW, dict(untimed_fence=0), 7541),
    ('the second round asks for no votes', NEW, dict(untimed_vote=0), 'untimed_vote'),
    ('a vote of the second round is not synced', NEW, dict(untimed_sync=0), 'untimed_sync'),
    ('the second round does not ask the others', NEW, dict(untimed_ask=0), 'untimed_ask'),
    ('a value that is hidden stays', NEW, dict(reduce='none'), 'live'),
    ('what hides a value gets the present time', NEW, dict(reduce='now'), 'reduce'),
    ('a forwarded put is tried twice or late', NEW, dict(forward_once=0), 804),
    ('the old rule', OLD, {}, 4782),
    ('the old rule, answers synced', OLD, dict(ask_sync=1), 4782),
    ('the old rule with what it lacked', AGED, {}, None),
    ('- without the question for open work', AGED, dict(ask_open=()), None),
    ('- (key, c) is not remembered', AGED, dict(memory=0), 1313),
    ('- (key, c) is remembered for L / 10', AGED, dict(memory=L // 10), 1313),
    ('- messages have no age limit', AGED, dict(age=0), 71),
    ('- messages outlive their connection', AGED, dict(dies=0), 13460),
    ('- a put does not begin from c', AGED, dict(from_c=0), None),
]

def count(rule, histories, first=0):
    bad, best, kinds, removals = 0, None, {}, 0
    for seed in range(first, first + histories):
        why, w = run(seed, rule, (6, 12, 20, 35)[seed % 4])
        removals += w.stat['removals']
        if why:
            bad += 1
            kinds[why.split(':')[0]] = kinds.get(why.split(':')[0], 0) + 1
            if best is None or len(w.log) < len(best[2]): best = (seed, why, w.log)
    return bad, best, kinds, removals

def history(why, log):
    print('      ' + why)
    for line in log: print('        ', line)

def known(rule, case):      # runs the one history that is known to fail
    if isinstance(case, str): return script(rule, SCRIPTS[case])
    return run(case, rule, (6, 12, 20, 35)[case % 4])

if __name__ == '__main__':
    args = sys.argv[1:]
    show = 'show' in args
    numbers = [int(a) for a in args if a.isdigit()]
    words = [a for a in args if a != 'show' and not a.isdigit()]
    rows = [r for r in ROWS if not words or any(a in r[0] for a in words)]
    if not numbers:
        # The rule meets 20,000 random histories and all scripts; each changed rule meets a history that it fails.
        if not words:
            bad, best, kinds, removals = count(NEW, 20000)
            print('the rule: %d of 20000 histories fail, %d removals' % (bad, removals), kinds or '')
            if best: history(best[1], best[2])
            for name, text in SCRIPTS.items(): print('the rule, script %s: %s' % (name, script(NEW, text)[0] or 'holds'))
        for name, rule, change, case in rows:
            if case is None: continue
            why, w = known(dict(rule, **change), case)
            print('%-50s %-16s %s' % (name, case if isinstance(case, str) else 'seed %d' % case, why or 'HOLDS'), flush=True)
            if show: history(why or '', w.log)
    for name, rule, change, case in rows if numbers else ():
        bad, best, kinds, removals = count(dict(rule, **change), *numbers)
        print('%-50s %d of %d %s, %d removals' % (name, bad, numbers[0], kinds or '', removals),
              'seed %d' % best[0] if best else '', flush=True)
        if best and show: history(best[1], best[2])
