# Exchanges and sync marks (anti-entropy.md): the histories of reap.py, with exchanges between the
# primaries and with faults that nobody is told of.
# exchange.py                runs the rule on 2,000 histories, and each changed rule on one that it fails
# exchange.py 20000          counts the failures of each rule in 20,000 histories
# exchange.py 20000 'token'  the same for the rules whose names contain this word
# Add the word "show" to see a history that fails (the shortest one, after a count).
import random, sys
from reap import NAMES, NEW, Node, Task, World, merge, number, script as run_script
import reap

JUMP = 1000     # an opening of a store jumps ahead by more than can have been lost

RULE = dict(
    exchange=1,     # primaries exchange
    jump=1,         # an opening of a store issues no seq again
    kept=1,         # a record keeps its seq in merges of files
    mark=1,         # sync marks decide what is pushed; 0: what the other lacks is pushed
    mark_sync=1,    # both stores are synced before their seqs go into a mark
    sum_first=1,    # who is asked reads its sums and syncs then; 0: what came after the sync is in the sums
    mark_proof=1,   # a mark advances only when all was proven
    mark_early=1,   # a mark names the seq at which the sum was taken, and not the present one
    both_sides=1,   # both stores keep a mark
    store=1,        # a mark names the other store
    token=1,        # a mark names the other store's token, which changes when the store loses something
    other_seq=1,    # a mark names the other store's seq, which has to be in its history
    role_token=1,   # the token changes when the node ceases to be a primary
    n_val_token=1,  # the tokens change when keys come from another class
    power_token=0,  # the token changes after a lost tail, too
    seen=1,         # synced seqs that were told in votes and marks are kept, and held against the history
    seen_orders=1,  # an order to remove tells the seqs of all voters
    seen_fill=1,    # who fills takes over the seqs that the others have kept
    doubt=1,        # what a store held when it lost something in its middle is not pushed
    no_merge=1,     # a copy in doubt is not merged with another one, which takes its place
    all_named=1,    # a drop needs a mark for every other primary; 0: for one of them
    partly='push',  # what is done when only some marks name it: push, keep, aside
    all_asked=1,    # a drop needs the answer of every other primary; 0: of those that are up
    all_lack=1,     # a drop needs that every other primary lacks the version
    all_full=1,     # a drop needs that every other primary is full
    newer=1,        # a version is left alone of which another full primary holds a newer one
    older=1,        # who holds an older version of what it had has lost it, and gets it
    twice=1,        # differences are compared twice
    time_fence=1,   # who stores a tombstone without its time raises the fence of the key
    drop_fence=1,   # a drop raises the fence of the key
    exact=1,        # a drop compares the copy under the key's lock
    full_pushes=1,  # only a full primary pushes
    tombs=0,        # a tombstone is pushed like a value that was never there
    early=1,        # the fences of the receiver are noted before the copy is read
    owe=1,          # what is owed is held against the marks
    repair=1,       # a read does not repair what was proven everywhere
    fill=1,         # who fills leaves out what a giver has proven to a full primary that lacks it
    emptied=1,      # a stand-in keeps the seq at which it held nothing
)

def covers(o, p): return p is None or o is not None and merge(o, p) == o

class Store(Node):      # a node with a store that has seqs, and with what it keeps about the others
    def __init__(s, i):
        s.i, s.serial = i, 0
        s.fresh()
        super().__init__(i)
        s.snaps = []
    def fresh(s):       # a new, empty store
        s.serial += 1
        s.sid, s.token, s.journal, s.synced, s.seq, s.at, s._obj, s.gaps = (s.i, s.serial), 1, [(0, None)], 0, 0, 0, None, []
        s.marks, s.proven, s.seen, s.doubt, s.emptied, s.aside, s.zombie, s.spread = {}, {}, {}, 0, 0, [], None, False
    def start(s):
        super().start()
        s.heard, s.checked, s.snaps = {}, set(), []
    @property
    def obj(s): return s._obj
    @obj.setter
    def obj(s, o):
        if o == s._obj: return
        if o and not o[1]: s._obj = o; return     # a step of a put within a store
        if s.zombie and s._obj == s.zombie and o and any(d in o[1] for d in s.zombie[1]): s.spread = 'written over'
        s.seq += 1
        s.at, s._obj = s.seq, o
        s.journal.append((s.seq, o))
    @property
    def disk(s): return s.journal[s.synced][1]
    @disk.setter
    def disk(s, _): s.synced = len(s.journal) - 1
    def synced_seq(s):  # everything up to this seq is on disk, with what an opening has jumped over
        return max(s.journal[s.synced][0], s.gaps[-1][1] if s.gaps else 0)
    def cut(s, length): # the last records of the key are gone
        del s.journal[length:]
        s.synced = min(s.synced, length - 1)
        s.at, s._obj = s.journal[-1]
    def open(s, jump, end=None):
        if end is None: end = max(s.journal[-1][0], s.gaps[-1][1] if s.gaps else 0)
        s.seq = end + JUMP if jump else end
        s.gaps.append((end, s.seq))
    def lost(s, seq): return any(end < seq < base for end, base in s.gaps)
    def save(s):
        return (list(s.journal), s.synced, s.seq, list(s.gaps), dict(s.marks), dict(s.proven), dict(s.seen), s.doubt, s.emptied,
                set(s.owed), s.token, s.full)
    def restore(s, saved):
        s.journal, s.synced, s.seq, s.gaps, s.marks, s.proven, s.seen, s.doubt, s.emptied, s.owed, s.token, s.full = saved
        s.at, s._obj = s.journal[-1]
    def doubtful(s): return s._obj is not None and s.at <= s.doubt

class Exchanges(World):
    node = Store
    def __init__(w, seed, rule, steps):
        w.E = rule
        w.R3 = random.Random(seed + 2)
        R = w.R3
        w.uneven, w.elsewhere, w.flags = None, False, set()     # elsewhere: the key is of another class
        w.silent = R.choice(('setback', 'setback', 'rot', 'rot', 'rot noticed', 'lose', 'lose noticed', None))
        w.when, w.pace = R.randrange(4, 40), R.choice((.1, .3, .6))
        w.counts = dict.fromkeys(('pushes', 'drops', 'asides', 'setbacks', 'exchanges', 'kept'), 0)
        super().__init__(seed, NEW, steps)
    # --- what is told, and kept ---
    def send(w, src, dst, kind, task, data=None, cap=None, birth=None):
        if kind == 'reply': data += ((w.N[src].sid, w.N[src].synced_seq()),)
        super().send(src, dst, kind, task, data, cap, birth)
    def heard(w, d, src, more): d.heard[src] = max(d.heard.get(src, more[0]), more[0])
    def order(w, t): return t.o, t.birth_serial, {**t.node.heard, t.node.i: (t.node.sid, t.node.synced_seq())}
    def remove(w, d, data):
        if w.E['seen_orders']: w.keep_seen(d, data[2])
        super().remove(d, data)
    def keep_seen(w, d, seqs):
        for i, q in seqs.items():
            if i != d.i: d.seen[i] = max(d.seen.get(i, q), q)
    def handshakes(w, x):
        super().handshakes(x)
        for y in w.N:
            if y is x or not y.up or y.paused or {(x.i, y.i), (y.i, x.i)} & w.cut: continue
            w.check_pair(x, y)
    def deliver(w, m):      # a message comes over a connection, which began with a handshake
        if w.N[m[0]].up: w.check_pair(w.N[m[0]], w.N[m[1]])
        if m[4] == 'get' and w.flagged(w.N[m[1]]): w.flags.add((m[5], m[1]))
        super().deliver(m)
    def accept(w, d, o, birth, cap, where):     # a tombstone that loses its time here does so behind a fence
        before, aside = d.obj, None
        if w.E['no_merge'] and d.doubtful() and not covers(o, d.obj) and not covers(d.obj, o): aside, d._obj = d.obj, None
        status = super().accept(d, o, birth, cap, where)
        if aside and d._obj is None: d._obj = aside
        elif aside: d.aside.append(aside)
        untimed = lambda p: {e for e, v in p[1].items() if v < 0} if p else set()
        if w.E['time_fence'] and untimed(d.obj) - untimed(before): d.R += 1; d.fence = d.R
        return status
    def coordinate(w, x, *args):
        if w.E['no_merge'] and x.doubtful() and x.i in w.places(x): x.aside.append(x.obj); x.obj = None
        super().coordinate(x, *args)
    def check_pair(w, x, y): w.check_history(x, y.seen.get(x.i)); w.check_history(y, x.seen.get(y.i))
    def check_history(w, x, q):
        if w.E['seen'] and q and q[0] == x.sid and x.lost(q[1]) and x.doubt < x.gaps[-1][1]:
            w.say(NAMES[x.i], 'learns that it was set back')
            w.lose_middle(x)
    def lose_middle(w, x, here=False):      # the store knows that it lost something, and not only its unsynced tail
        if not w.E['doubt']: return
        x.doubt, x.token = x.seq if here else x.gaps[-1][1], x.token + 1
        if w.prim(x): x.full = False
    def mark(w, x, i, y):       # what x has proven to i; y is what i says of itself
        m = max((m for m in (x.marks.get(i), y['proven'] if w.E['both_sides'] else None) if m and m[0] == x.sid), default=None)
        if not m or w.E['store'] and m[2] != y['sid']: return 0
        if w.E['token'] and m[3] != y['token'] and m[2] == y['sid']: return 0
        if w.E['other_seq'] and any(end < m[4] < base for end, base in y['gaps']): return 0
        return m[1]
    # --- exchanges ---
    def exchange(w, x, i):
        if not w.E['exchange'] or any(t.kind == 'exchange' and t.to == i for t in x.tasks.values()): return
        if not x.up or x.paused or not w.prim(x) or x.i == i: return
        w.counts['exchanges'] += 1
        t = Task('exchange', x, w, to=i, tries=0 if w.E['twice'] else 1, answers={}, question=0)
        w.ask_sum(t, 'compare')
    def ask_sum(w, t, stage):
        x = t.node
        if w.E['mark_sync']: x.disk = x.obj
        t.stage, t.mine, t.at, t.seq = stage, None if w.elsewhere else x.obj, x.at, x.synced_seq() if w.E['mark_sync'] else x.seq
        t.answers, t.question = {}, t.question + 1
        def skipped(i): return not w.E['all_asked'] and i != t.to and (not w.N[i].up or w.N[i].paused or {(x.i, i), (i, x.i)} & w.cut)
        for i in range(w.n) if stage == 'verdict' else (t.to,):
            if i != x.i and not skipped(i): w.queue(t, i, 'sum', t.question, True)
    def answer(w, d, src, kind, data):
        if kind == 'proven':
            d.proven[src] = data
            return 'ok', None
        if w.E['mark_sync'] and w.E['sum_first']: d.disk = d.obj
        return 'ok', dict(question=data, obj=d.obj, sid=d.sid, token=d.token, full=d.full, gaps=list(d.gaps), proven=d.proven.get(src),
                          seq=d.synced_seq() if w.E['mark_sync'] else d.seq, doubtful=d.doubtful(), sender_seen=d.seen.get(src))
    def reply(w, t, src, status, answer, counter):
        if t.kind == 'fill' and status == 'ok':
            answer = w.fill_from(t, src, answer)
            if getattr(t, 'stale', False): return w.close(t)
        if t.kind != 'exchange': return super().reply(t, src, status, answer, counter)
        x, is_sum = t.node, isinstance(answer, dict) and 'question' in answer
        if is_sum != (t.stage in ('compare', 'verdict')) or is_sum and answer['question'] != t.question: return
        t.wait.discard(src)
        if t.stage == 'push':
            if status == 'stale':
                t.caps[src] = counter
                return w.push_copy(t)
            t.tries = 1
            return w.ask_sum(t, 'compare')
        if t.stage == 'told': return w.close(t)
        t.answers[src] = answer
        w.check_history(x, answer['sender_seen'])
        if t.stage == 'verdict':
            if not t.wait: w.verdict(t)
        elif covers(answer['obj'], t.mine): w.advance(t, answer)
        elif t.tries == 0:
            t.tries = 1
            w.ask_sum(t, 'compare')
        else: w.differ(t, answer)
    def advance(w, t, y):
        x = t.node
        if not w.E['mark_proof'] and t.stage == 'compare': pass
        m = (x.sid, t.seq if w.E['mark_early'] else x.seq, y['sid'], y['token'], y['seq'])
        x.marks[t.to] = m
        if not w.E['mark_sync'] or w.E['seen']: w.keep_seen(x, {t.to: (y['sid'], y['seq'])})
        t.stage = 'told'
        w.queue(t, t.to, 'proven', m, True)
    def differ(w, t, y):
        x = t.node
        if x.obj != t.mine or not x.obj: return w.close(t)
        if w.E['full_pushes'] and not x.full: return w.close(t)
        if w.E['tombs'] and w.tombs(x.obj): return w.push_copy(t)
        below = w.E['mark'] and t.at <= w.mark(x, t.to, y)
        if not w.E['mark_proof']: w.advance(t, y)
        if below or x.doubtful() or w.E['mark'] and t.at <= max((m[1] for i, m in x.marks.items() if m[0] == x.sid), default=0):
            return w.ask_sum(t, 'verdict')
        w.push_copy(t)
    def flush(w, t):
        if t.kind == 'exchange' and not w.E['early']:
            w.handshakes(t.node)
            t.out = [(i, kind, data, t.node.known.get(i), birth) for i, kind, data, _, birth in t.out]
        super().flush(t)
    def push_copy(w, t):
        x = t.node
        if not x.obj: return w.close(t)
        if t.tries > 6: return w.close(t)
        t.tries += 1
        t.stage = 'push'
        w.counts['pushes'] += 1
        t.conns[t.to] = w.conn[x.i][t.to]
        obj = x.obj
        t.out.append((t.to, 'put', obj, t.caps.get(t.to), t.birth)); t.wait.add(t.to)
    def verdict(w, t):
        x, ys = t.node, t.answers
        if x.obj != t.mine and w.E['exact'] or not x.obj: return w.close(t)
        mine = t.mine
        if t.to in ys and not covers(ys[t.to]['obj'], mine) and not w.lacks(ys[t.to]['obj'], mine): return w.push_copy(t)
        lacking = [i for i in ys if w.lacks(ys[i]['obj'], mine)]
        named = [i for i in ys if t.at <= w.mark(x, i, ys[i])]
        if t.to not in lacking: return w.close(t)
        # Who holds a newer version brings that one.
        newer = lambda o: covers(o, mine) and o[0] != mine[0]
        if w.E['newer'] and any(y['full'] and not y['doubtful'] and newer(y['obj']) for y in ys.values()): return w.close(t)
        # Somebody else has it, so it was not removed.
        if len(lacking) < len(ys) and w.E['all_lack']:
            if any(ys[i]['full'] and not ys[i]['doubtful'] for i in ys if i not in lacking):
                if x.doubtful(): x.doubt = 0
                return w.push_copy(t)
            return w.close(t)
        if w.E['all_full'] and not all(y['full'] for y in ys.values()): return w.close(t)
        if named and (len(named) == len(ys) or not w.E['all_named']): return w.drop(t, 'drops')
        if x.doubtful() and all(y['full'] for y in ys.values()): return w.drop(t, 'asides')
        if named and w.E['partly'] == 'aside': return w.drop(t, 'asides')
        if named and w.E['partly'] == 'keep': w.counts['kept'] += 1; return w.close(t)
        if x.doubtful(): return w.close(t)
        # A store that could have said it was lost since. What was removed may return, and nothing is lost.
        if any(x.marks.get(i, (0, 0, 0))[2] != y['sid'] for i, y in ys.items()): x.spread = 'rule 7'
        w.push_copy(t)
    def drop(w, t, what):
        x = t.node
        w.counts[what] += 1
        w.say(NAMES[x.i], 'drops' if what == 'drops' else 'sets aside', w.show(x.obj))
        if w.E['drop_fence']: x.R += 1; x.fence = x.R
        x.aside.append(x.obj)
        others = None
        for y in t.answers.values():
            if y['obj']: others = merge(others, y['obj']) if others else y['obj']
        x.obj = others
        w.close(t)
    def close(w, t):
        super().close(t)
    # --- the other ways of a copy ---
    def about(w, y): return dict(sid=y.sid, token=y.token, full=y.full, gaps=list(y.gaps), proven=None, obj=y.obj)
    def lacks(w, o, copy):      # holds nothing of it; an older version of it was not removed but lost
        return not covers(o, copy) and not (w.E['older'] and o and covers(copy, o))
    def flagged(w, x):          # a copy that x does not give away without a look at the others
        return x.obj is not None and (x.doubtful() or w.E['mark'] and any(m[0] == x.sid and x.at <= m[1] for m in x.marks.values()))
    def fill_from(w, t, src, answer):
        # What is flagged waits until all have been compared. A full primary that had it, and lacks it, has removed it.
        n, y = t.node, w.N[src]
        t.__dict__.setdefault('said', {})[src] = w.about(y)
        if w.E['seen_fill']: w.keep_seen(n, {i: q for i, q in y.seen.items() if i != src})
        if answer and w.E['fill'] and w.flagged(y) and y.obj == answer: t.__dict__.setdefault('held', []).append((src, y.at)); answer = None
        if len(set(t.got) | {src}) < w.n - 1: return answer
        for i, at in getattr(t, 'held', []):
            x, copy = w.N[i], t.said[i]['obj']
            had = lambda j: x.doubtful() or at <= w.mark(x, j, t.said[j])
            if any(j != i and z['full'] and w.lacks(z['obj'], copy) and had(j) for j, z in t.said.items()): continue
            if w.lacks(n.obj, copy) and at <= w.mark(x, n.i, w.about(n)): continue
            # Two stores lost something at the same time, and nobody else can say.
            if x.doubtful() and not any(j != i and z['full'] for j, z in t.said.items()): x.spread = 'no full primary'
            if i == src: answer = copy
            elif w.accept(n, copy, t.birth, t.caps[n.i], 'from ' + NAMES[i]) != 'ok': t.stale = True
        return answer
    def get(w, x):          # the bit that an answer to a get has
        super().get(x)
        if w.flagged(x): w.flags.add((max(x.tasks), x.i))
    def repair(w, t):
        if w.E['repair']:
            copies = {i: o for i, o in t.got.items() if i < w.n}
            if any(o and (t.id, i) in w.flags and not all(covers(p, o) for p in copies.values()) for i, o in t.got.items()):
                t.phase = 1
                t.wait.clear()
                return w.close(t)
        super().repair(t)
    def owe(w, x):
        if w.E['owe'] and x.obj and w.prim(x):
            w.handshakes(x)
            m = lambda i: x.marks.get(i) or (None, 0)
            if x.doubtful(): return x.owed.clear()
            x.owed -= {i for i in x.owed if w.E['mark'] and m(i)[0] == x.sid and x.at <= m(i)[1]}
        super().owe(x)
    def push(w, x):
        if not w.prim(x) and x.obj:
            w.handshakes(x)
            if w.E['emptied'] and x.at <= x.emptied or x.doubtful():
                w.say(NAMES[x.i], 'sets aside what it holds for others')
                x.aside.append(x.obj); x.obj = None
                return
        super().push(x)
    def clean(w, d, asked, o):
        status = super().clean(d, asked, o)
        if status == 'yes' and not w.prim(d): d.emptied = d.synced_seq()
        return status
    # --- faults ---
    def kill(w, x, machine):
        if not x.up: return
        w.say(NAMES[x.i], 'loses power' if machine else 'is killed')
        x.up = x.paused = False
        if machine:
            old = x.obj
            x.cut(x.synced + 1)
            w.excuse(x, old, x.obj, True)
            if old != x.obj: w.say('  it comes back with', w.show(x.obj))
            if w.prim(x): x.full = False
            if w.E['power_token']: x.token += 1
        w.begin(x)
        if w.prim(x): x.owed = set(range(w.n)) - {x.i}
    def begin(w, x, top=None):
        x.boot += 1
        x.open(w.E['jump'], top)
        x.start()
        for j in range(5):
            if j != x.i: w.reset(x.i, j)
    def excuse(w, x, old, new, disks=False):     # x had the one, and has the other
        def holds(o, v): return o and any(o[0].get(d[0], 0) >= d[1] for d in w.ops[v].dots)
        others = [o for y in w.N if y is not x and not y.doubtful() for o in (y.obj, disks and y.disk or None)] + [new]
        w.excused |= {v for v in range(len(w.ops)) if v not in w.reaped and holds(old, v) and not any(holds(o, v) for o in others)}
    def wipe(w, x):
        w.say(NAMES[x.i], 'loses its disk')
        old = x.obj
        x.fresh()
        w.excuse(x, old, None)
        x.owed, x.full, x.up = set(), False, True
        w.begin(x)
        x.floor, x.removed, x.up, x.paused = -99, set(), True, False
        x.owed = set(range(w.n)) - {x.i}
    def dead(w, o): return o and any(number(v) in w.reaped and not w.ops[number(v)].tomb for v in o[1].values())
    def set_back(w, x):
        if not x.up or not x.snaps: return
        old = x.obj
        # Mostly to a moment at which it held a version that was removed since.
        gone = [k for k in x.snaps if w.dead(k[0][-1][1])]
        x.restore(w.R3.choice(gone if gone and w.R3.random() < .8 else x.snaps[-8:]))
        w.counts['setbacks'] += 1
        w.say(NAMES[x.i], 'is killed and set back to', w.show(x.obj))
        w.excuse(x, old, x.obj); w.excuse(x, x.obj, None)
        x.zombie = x.obj
        w.begin(x)
        x.owed = set(range(w.n)) - {x.i} if w.prim(x) else set()
    def rot(w, x, noticed=False):
        older = [k for k, (_, o) in enumerate(x.journal[:-1]) if o]
        if not x.up or not older or x.obj and not w.tombs(x.obj): return
        old, top = x.obj, x.seq
        dead = [k for k in older if w.dead(x.journal[k][1])]
        x.cut(w.R3.choice(dead if dead and w.R3.random() < .8 else older) + 1)
        w.say(NAMES[x.i], 'is killed and its later records are unreadable', '(noticed)' if noticed else '', '->', w.show(x.obj))
        w.excuse(x, old, x.obj)
        x.zombie = x.obj
        w.begin(x, top)
        # What was written since the last marks, and is lost without a notice, looks like a write that the others missed.
        known = all(m[0] == x.sid and x.at <= m[1] and m[2] == w.N[i].sid for i, m in w.marks_of(x)) if w.prim(x) else x.at <= x.emptied
        if noticed or not known: w.lose_middle(x)
        x.owed = set(range(w.n)) - {x.i} if w.prim(x) else set()
        return True
    def compact(w, x):
        if not w.E['kept'] and x.obj: x.seq += 1; x.at = x.seq; x.journal.append((x.seq, x.obj))
    def marks_of(w, x): return [(i, x.marks.get(i, (None,) * 5)) for i in range(w.n) if i != x.i]
    def lose(w, x, noticed):    # with n = 2 nobody could tell it from a removal, unless the store notices it
        others = [y for y in w.N[:w.n] if y is not x]
        if w.n == 2 and not noticed or not w.prim(x) or not x.full or not x.obj or not all(y.full and covers(y.obj, x.obj) for y in others): return
        w.say(NAMES[x.i], 'loses a single record', '(noticed)' if noticed else '')
        x.journal = [(q, None) for q, _ in x.journal]
        x.at, x._obj = 0, None
        if noticed: w.lose_middle(x, True)
        return True
    # --- the history ---
    def more(w):
        R = w.R3
        w.when -= 1
        if w.silent and w.when < 0 and R.random() < .7:
            x = w.N[R.randrange(w.n) if R.random() < .8 else R.randrange(5)]
            noticed = 'noticed' in w.silent
            done = w.set_back(x) if w.silent == 'setback' else w.lose(x, noticed) if 'lose' in w.silent else w.rot(x, noticed)
            if done or w.silent == 'setback': w.silent = None
        for x in w.N:
            if x.up: x.snaps.append(x.save())
        if R.random() < .1:
            x = w.N[R.randrange(w.n)]
            w.compact(x)
        if R.random() < w.pace:
            x = w.N[R.randrange(w.n)]
            w.exchange(x, R.choice([i for i in range(w.n) if i != x.i]))
            if R.random() < .5: w.burst(R.choice((2, 10, 20)))
    def run(w):
        R = w.R3
        if R.random() < .3: return super().run()
        some = lambda *a: R.choice(a)
        order = ['put', some('round', 'round', 'fault'), some('put', 'round', 'fault', 'get'), some('round', 'recover'), 'recover', 'settle', 'delete',
                 some('burst', 'recover', 'round', 'fault'), 'recover', 'settle', 'reap', some('settle', 'burst', 'recover'), 'reap', some('reap', 'recover', 'fault'),
                 'reap', some('round', 'fault', 'settle', 'wipe', 'burst', 'burst'), 'silent', some('recover', 'fault', 'wipe', 'put', 'round', 'settle', 'burst'),
                 some('recover', 'burst'), some('round', 'settle', 'put', 'fault', 'get'), 'round', some('put', 'get', 'round')]
        order = [a for a in order if R.random() < .95]
        for _ in range(w.steps // 6): order.insert(R.randrange(len(order) + 1), some('burst', 'put', 'get', 'settle', 'round', 'fault', 'lazy', 'close', 'recover', 'reap'))
        w.when = 99 if w.silent and R.random() < .9 else w.when
        faults = [some(0, 1, 2), some(0, 1, 2), some(0, 1, 2), some(0, 1, 1), 1, some(0, 1), some(0, 1, 2)]
        w.write(False)
        for action in order:
            w.now += 1
            w.more()
            x = R.choice(w.N[:w.n])
            if action in ('put', 'delete'): w.write(action == 'delete'); w.burst(some(0, 8, 20, 60))
            elif action == 'round': w.round(); w.burst(some(20, 60, 120))
            elif action == 'silent': w.when = 0
            elif action == 'fault': w.fault(faults)
            elif action == 'wipe': w.wipe(x)
            elif action == 'burst': w.burst(some(3, 20, 40))
            elif action == 'lazy': w.burst(some(1, 4), True)
            elif action == 'recover':
                if R.random() < .7: w.cut.clear()
                for y in w.N:
                    if R.random() < .8: y.up, y.paused = True, False
            elif action == 'settle':
                for y in w.N:
                    if y.up and not y.paused: w.settle(y)
                w.burst(some(20, 60))
            elif not x.up or x.paused: continue
            elif action == 'reap': w.reap(x); w.burst(some(60, 100, 200))
            elif action == 'sync': x.disk = x.obj
            elif action == 'close':
                if x.tasks: w.close(R.choice(list(x.tasks.values())))
            else: w.get(x); w.burst(some(0, 4, 20))
        w.heal(False)
        w.say('late messages arrive')
        return w.heal(True)
    def round(w):       # every primary begins an exchange with every other one
        for x in w.N[:w.n]:
            for i in range(w.n): w.exchange(x, i)
    def healed(w):      # one complete round without a read, before tombstones are removed
        def idle():
            for _ in range(12):
                w.burst(300)
                for x in w.N:
                    for t in list(x.tasks.values()):
                        if not t.out and not any(m[5] == t.id for m in w.msgs): w.close(t)
        late, w.lazy = w.lazy, 0
        for x in w.N:
            for t in list(x.tasks.values()): w.close(t)
        for _ in range(4):
            for x in w.N: w.fill(x), w.push(x), w.owe(x)
            idle()
        def values(o): return {d: v for d, v in o[1].items() if not w.ops[number(v)].tomb} if o else {}
        # A removal that is under way may need a second round, but only for its tombstone.
        for name, what in (('one complete round', values), ('two complete rounds', lambda o: o)):
            w.round(); idle()
            if all(x.full for x in w.N[:w.n]) and any(what(x.obj) != what(w.N[0].obj) for x in w.N[:w.n]) and w.uneven is None:
                w.uneven = 'UNEQUAL after %s: ' % name + ', '.join(w.show(x.obj) for x in w.N[:w.n])
                w.say(w.uneven)
        w.lazy = late
    def last_resort(w, x):
        for x in w.N[:w.n]:
            for i in range(w.n): w.exchange(x, i)
    def check(w, bad):
        why = super().check(bad) or w.uneven
        if why and why.startswith(('RETURNED', 'HIDDEN')) and any(x.spread for x in w.N): return None
        # Who removed the version has lost its disk since, so nobody can know.
        if why and why.startswith('RETURNED: v'):
            v = int(why.split('v')[1].split(',')[0])
            if any(x.zombie and not any(v in y.removed for y in w.N[:w.n] if y is not x) for x in w.N): return None
        if why and why.startswith('LOST') and any(x.spread and w.tombs(x.zombie) for x in w.N): return None
        return why

# Histories that were found by hand, in the words of reap.py. "trade X" begins exchanges of X with all
# others, and "round" those of all. "save X" keeps a copy of X's files, and "back X" sets X back to it.
# "rot X" loses the records of X up to the last one that held a value, "decay X" loses them and X
# knows it, "vanish X" loses the only record, and "swap X" gives X an empty disk under the same id.
SCRIPTS = dict(
    mark_early="""hold B>A reply, hold C>A reply, trade A, all, hold A>B put, hold A>C put, put A, send A>B put, lose A>B put,
        send A>C put, lose A>C put, free B>A reply, free C>A reply, all""",
    other_seq="two A, save B, put A, all, trade_all A, all, back B",
    both_sides="put A, all, save A, trade_all A, all, GONE, back A, forget A",
    mark_sync="""hold B>A put, hold B>C put, put B, send B>A put, lose B>A put, send B>C put, lose B>C put, sync B, put B, send B>A put, lose B>A put,
        send B>C put, lose B>C put, close B, trade A, all, power B, start B, forget B""",
    token="two A, put A, all, trade_all A, all, miss B, fill B, all",
    store="two A, put A, all, trade_all A, all, wipe B, fill B, all",
    all_named="""hold A>B put, put A, send A>B put, lose A>B put, all, close A, forget A, hold A>B sum, trade A, all, close A,
        free A>B sum, vanish C""",
    all_asked="put A, all, trade_all A, all, vanish B, pause C, trade A, all, run C, pause A, trade C, all, run A",
    exact="""excuse_writes A, put A, all, trade_all A, all, GONE, rot A, start A, forget A, hold C>A reply, trade A, all, hold A>B put, hold A>C put, put A, send A>B put,
        lose A>B put, send A>C put, lose A>C put, free C>A reply, all""",
    seen_orders="put A, all, save C, GONE, back C",
    seen_fill="put A, all, save A, GONE, wipe C, fill C, all, pause B, back A, owe A, all, run B",
    power_token="put A, all, trade_all A, all, GONE, sync B, sync C, power B, start B, power C, start C, fill B, fill C, all, rot A, start A",
    owe="put A, all, trade_all A, all, GONE, rot A, start A, owe A, all",
    repair="put A, all, trade_all A, all, GONE, rot A, start A, forget A, get A, all",
    emptied="""pause A, hold D>A put, put D, all, run A, free D>A put, push D, all, trade_all A, all, GONE, rot D, start D, push D, all""",
    seen="put A, all, save A, GONE, back A",
    doubt="put A, all, GONE, decay A, start A",
    no_merge="put A, all, save A, GONE, back A, forget A, trade A, put B, all",
    mark="put A, all, trade_all A, all, GONE, rot A, start A, forget A, trade A, all",
    kept="put A, all, trade_all A, all, GONE, rot A, start A, forget A, rewrite A, trade A, all",
    newer="""put A, all, trade_all A, all, delete A, all, reap B, all, close B, hold B>C remove, reap B, all, send B>C remove, close B, rot A, start A, forget A,
        trade A, all, free B>C remove, all""",
    older="two A, put A, all, put A, all, trade_all A, all, slip B",
    jump="""two A, put A, all, save A, put A, all, trade_all A, all, back A, forget A, hold A>B put, put A, send A>B put, lose A>B put,
        close A, forget A, trade A, all""",
    sum_first="two A, put A, all, trade A, all, power B, start B, fill B, all",
    mark_proof="""hold A>B put, hold A>C put, put A, send A>B put, lose A>B put, send A>C put, lose A>C put, close A, forget A, trade A, all,
        close A, free A>B put, free A>C put, trade A, all""",
    role_token="two A, put A, all, trade_all A, all, move B, fill B, all",
    n_val_token="two A, other_class A, hold A>B put, put A, send A>B put, lose A>B put, close A, forget A, trade_all A, all, free A>B put, this_class A, fill B, all",
    all_lack="put A, all, trade_all A, all, vanish B, trade_all A, all",
    tombs="""mode newest, put A, all, skew B 100, delete B, all, trade_all A, all, reap A, all, close A, reap A, all, close A, entomb C, start C, forget C,
        hold A>C put, put A, all, send A>C put, lose A>C put, close A, forget A, trade C, all""",
    fill="put A, all, GONE, wipe C, decay A, start A, fill C, all",
    time_fence="""mode newest, put A, all, hold C>A put, hold C>B put, put C, send C>A put, send C>B put, wipe C, fill C, all, skew B 50, delete B, all,
        hold B>A remove, reap B, all, trade B, all, free C>A put, free C>B put, all""",
    early="""hold A>B put, put A, send A>B put, lose A>B put, all, close A, forget A, trade A, all, delete C, all, reap C, all, close C,
        reap C, all, close C, get A, all, free A>B put, all""",
)
SCRIPTS = {k: v.replace('GONE', 'delete A, all, reap A, all, close A, reap A, all, close A') for k, v in SCRIPTS.items()}

class Scripted(Exchanges):
    excuses = False
    def __init__(w, seed, rule, steps): super().__init__(seed, rule, steps); w.silent = None
    def check(w, bad): return Exchanges.check(w, bad) if w.excuses else World.check(w, bad) or w.uneven
    def trade(w, x):
        for i in range(w.n): w.exchange(x, i)
    def save(w, x): x.saved = x.save()
    def back(w, x): x.snaps = [x.saved]; w.set_back(x); x.up = True
    def decay(w, x): Exchanges.rot(w, x, True)
    def vanish(w, x): w.say(NAMES[x.i], 'loses a single record'); x.journal = [(0, None)]; x.synced = x.at = 0; x._obj = None
    def slip(w, x): w.say(NAMES[x.i], 'loses its newest record'); x.cut(len(x.journal) - 1)
    def rewrite(w, x): w.compact(x)
    def entomb(w, x):
        del x.journal[next(k for k, (_, o) in enumerate(x.journal) if o and w.timed(o) and w.tombs(o)) + 1:]
        x.cut(len(x.journal))
        w.say(NAMES[x.i], 'is killed and has', w.show(x.obj))
        w.begin(x, x.seq)
    def miss(w, x): w.vanish(x); w.lose_middle(x, True)
    def move(w, x):         # another node takes the place of x, and gives it back
        w.say(NAMES[x.i], 'hands back what it holds, and is to be a primary again')
        x.obj, x.full, x.token = None, False, x.token + w.E['role_token']
    def other_class(w, x): w.elsewhere = True
    def this_class(w, x):   # n_val was 1, and A the only primary
        w.elsewhere = False
        w.N[1].full = False
        for y in w.N: y.token += w.E['n_val_token']
    def excuse_writes(w, x): w.excuses = True
    def forget(w, x): x.owed.clear()
    def two(w, x): w.n = 2
    def trade_all(w, x):
        for y in w.N[:w.n]: w.trade(y)

def script(rule, text): return run_script(rule, text, Scripted)

def run(seed, rule, steps):
    w = Exchanges(seed, rule, steps)
    return w.run(), w

def count(rule, histories, first=0):
    bad, best, kinds, counts = [], None, {}, {}
    for seed in range(first, first + histories):
        why, w = run(seed, rule, (6, 12, 20, 35)[seed % 4])
        for k, v in w.counts.items(): counts[k] = counts.get(k, 0) + v
        counts['removals'] = counts.get('removals', 0) + w.stat['removals']
        if why:
            bad.append(seed)
            kinds[why.split(':')[0]] = kinds.get(why.split(':')[0], 0) + 1
            if best is None or len(w.log) < len(best[2]): best = (seed, why, w.log)
    return bad, best, kinds, counts

# A changed rule: its name, what is changed, and the script that fails. Where a script needs a second change
# because another rule stands in for this one, "beside" has it, and the rule with that change alone holds.
ROWS = [
    ('the rule', {}, None, {}),
    ('an opening issues seqs again', dict(jump=0), 'jump', {}),
    ('merges of files give new seqs', dict(kept=0), 'kept', {}),
    ('synced seqs are not kept by those who were told', dict(seen=0), 'seen', {}),
    ('an order to remove tells the seq of its sender only', dict(seen_orders=0), 'seen_orders', {}),
    ('who fills does not take over told seqs', dict(seen_fill=0), 'seen_fill', {}),
    ('there are no marks', dict(mark=0), 'mark', {}),
    ('the other store keeps no mark', dict(both_sides=0), 'both_sides', dict(seen=0)),
    ('a mark does not name the store', dict(store=0), 'store', dict(other_seq=0)),
    ('a mark does not name the token', dict(token=0), 'token', {}),
    ("a mark does not name the other store's seq", dict(other_seq=0), 'other_seq', dict(seen=0)),
    ('a lost tail changes the token', dict(power_token=1), 'power_token', {}),
    ('a change of role keeps the token', dict(role_token=0), 'role_token', {}),
    ('a change of n_val keeps the tokens', dict(n_val_token=0), 'n_val_token', {}),
    ('the seqs of a mark are not synced', dict(mark_sync=0), 'mark_sync', {}),
    ('who is asked syncs before it reads its sums', dict(sum_first=0), 'sum_first', {}),
    ('a mark advances without a proof', dict(mark_proof=0), 'mark_proof', {}),
    ('a mark names the seq at the end', dict(mark_early=0), 'mark_early', {}),
    ('an older version counts as a removal', dict(older=0), 'older', {}),
    ('a drop needs one mark', dict(all_named=0), 'all_named', {}),
    ('a drop needs the answers of those that are up', dict(all_asked=0), 'all_asked', {}),
    ('a drop needs one primary that lacks it', dict(all_lack=0), 'all_lack', {}),
    ('a version goes where another one has a newer one', dict(newer=0), 'newer', {}),
    ('a drop does not need that all are full', dict(all_full=0), None, {}),
    ('a drop does not compare the copy', dict(exact=0), 'exact', {}),
    ('a drop raises no fence', dict(drop_fence=0), None, {}),
    ('differences are compared once', dict(twice=0), None, {}),
    ('a tombstone is always pushed', dict(tombs=1), 'tombs', {}),
    ('the counters are noted when a copy is sent', dict(early=0), 'early', {}),
    ('a filling primary pushes', dict(full_pushes=0), None, {}),
    ('a store that lost something in its middle pushes', dict(doubt=0), 'doubt', {}),
    ('a copy in doubt is merged with a new one', dict(no_merge=0), 'no_merge', {}),
    ('what is owed is pushed below a mark', dict(owe=0), 'owe', {}),
    ('a read spreads a copy below a mark', dict(repair=0), 'repair', {}),
    ('who fills takes everything', dict(fill=0), 'fill', {}),
    ('a stand-in does not note that it was empty', dict(emptied=0), 'emptied', {}),
    ('a tombstone loses its time by a copy without a fence', dict(time_fence=0), 'time_fence', {}),
    ('there are no exchanges', dict(exchange=0), None, {}),
]

if __name__ == '__main__':
    args = sys.argv[1:]
    show = 'show' in args
    numbers = [int(a) for a in args if a.isdigit()]
    words = [a for a in args if a != 'show' and not a.isdigit()]
    rows = [r for r in ROWS if not words or any(a in r[0] for a in words)]
    if numbers:
        for name, change, case, beside in rows:
            bad, best, kinds, counts = count(dict(RULE, **change), *numbers)
            print('%-55s %d of %d %s' % (name, len(bad), numbers[0], kinds or ''), counts, bad[:5], flush=True)
            if best and show: reap.history(best[1], best[2])
    else:
        if not words:
            bad, best, kinds, counts = count(RULE, 2000)
            print('the rule: %d of 2000 histories fail' % len(bad), kinds or '', counts, flush=True)
            if best: reap.history(best[1], best[2])
        for name, change, case, beside in rows:
            if not case: continue
            holds, w = script(dict(RULE, **beside), SCRIPTS[case])
            fails, w = script(dict(RULE, **beside, **change), SCRIPTS[case])
            print('%-55s %-12s %s' % (name, case, fails or 'HOLDS'), '' if not holds else 'THE RULE FAILS: ' + holds, flush=True)
            if show: reap.history(fails or '', w.log)
