#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real job program and compiler under load: 64 processes at a barrier on an empty store, restarts, kill -9 of anything at random.
AF_LONG=1: each of the 64 runs and compares, and 50 kills instead of 8."""
import hashlib, os, random, signal, sys, threading, time
from afwire import *
from ctl import *
from test_toolchains import Driver, second

LONG = bool(os.environ.get('AF_LONG'))
SEED = int(os.environ.get('AF_SEED', '1'))
TEXTS = [open(p, 'rb').read() for p in SAMPLES]


def child(path, order, go, out):
    """In a process of its own: waits for the barrier, asks for all six at once, reports digests of what came."""
    os.read(go, 1)
    c = Client(path, timeout=300)
    ids = {c.send(TEXTS[k], text=True): k for k in order}
    got = {}
    while len(got) < len(ids):
        a = c.wait()
        assert a.kind == RESULT, a
        got[ids[a.request]] = (hashlib.sha256(a.bundle()).hexdigest(), a.key.hex(), a.hit)
    os.write(out, json.dumps(got).encode() + b'\n')


def barrier(path, n, seed):
    """What n processes got, each {sample: (digest of the bundle, key, hit)}."""
    go_read, go_write = os.pipe()
    pids, ends = [], []
    for i in range(n):
        r, w = os.pipe()
        order = list(range(len(TEXTS)))
        random.Random(seed * 100 + i).shuffle(order)
        pid = os.fork()
        if pid == 0:
            try:
                os.close(go_write)
                child(path, order, go_read, w)
                os._exit(0)
            except BaseException as e:
                os.write(2, f'child {i}: {e!r}\n'.encode())
                os._exit(1)
        os.close(w)
        pids.append(pid)
        ends.append(r)
    os.close(go_read)
    os.close(go_write)  # all at once
    out = []
    for pid, r in zip(pids, ends):
        with open(r) as f:
            text = f.read()
        assert os.waitpid(pid, 0)[1] == 0, 'a client failed'
        out.append({int(k): tuple(v) for k, v in json.loads(text).items()})
    return out


def compare(path, sample):
    d = ok(ctl('run', '--compare', '--json', sample, env={'AUTOFUSE_SOCKET': path}))
    assert d.json()['identical'], d


def C02_C03_sixty_four_processes_on_an_empty_store():
    """As many compiles as there is to compile; after a restart only hits, bit for bit, and no compiler is started."""
    with Driver() as d:
        s = d.server
        got = barrier(s.path, 64, SEED)
        for k in range(len(TEXTS)):
            assert len({g[k][:2] for g in got}) == 1, k
            assert sum(g[k][2] == HIT_COMPILED for g in got) == 1, [g[k][2] for g in got]
        kernels = set()
        for t in TEXTS:
            c = s.client()
            kernels |= set(c.ask(t, text=True).binaries())
            c.close()
        st = ok(ctl('stats', '--json', env={'AUTOFUSE_SOCKET': s.path})).json()
        assert st['fragment_compiles'] == 6 and st['kernel_compiles'] == len(kernels), (st, len(kernels))
        assert st['store']['records']['kernels'] == len(kernels) and st['failures'] == 0 and st['retries'] == 0, st
        if LONG:
            threads = [threading.Thread(target=lambda i=i: [results.append(ctl('run', '--compare', SAMPLES[(i + k) % 6], env={'AUTOFUSE_SOCKET': s.path}).code)
                                                            for k in range(6)]) for i in range(64)]
            results = []
            [t.start() for t in threads]
            [t.join() for t in threads]
            assert results == [0] * 64 * 6, results
        else:
            for sample in SAMPLES:
                compare(s.path, sample)
        n = d.n_runs()
        assert s.stop() == 0
        s.start()
        again = barrier(s.path, 64, SEED + 1)
        assert all(a[k][:2] == got[0][k][:2] and a[k][2] == HIT_STORE for a in again for k in range(len(TEXTS)))
        st = s.stats()
        assert (st['fragment_compiles'], st['kernel_compiles'], st['hits']) == (0, 0, 64 * 6), st
        assert d.n_runs() == n, 'a compiler was started'
        s.no_leftovers()


def proc_tree(root):
    """{pid: parent} of all living descendants."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            f = open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()
        except OSError:
            continue
        if f[0] not in 'ZX':
            parents[int(pid)] = int(f[1])
    found = {}
    grown = True
    while grown:
        grown = False
        for pid, parent in parents.items():
            if pid not in found and (parent == root or parent in found):
                found[pid] = parent
                grown = True
    return found


class Load:
    """Clients that ask without end; each gets an answer or a retryable error, and no key ever has two binaries."""

    def __init__(self, s, texts, n):
        self.s, self.texts, self.end, self.errors, self.answers, self.failures, self.binaries = s, texts, False, [], 0, 0, {}
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(n)]
        [t.start() for t in self.threads]

    def take(self, a):
        with self.lock:
            if a.kind == RESULT:
                self.answers += 1
                for key, binary in a.binaries().items():
                    if self.binaries.setdefault(key, binary) != binary:
                        self.errors.append(f'two binaries under {key.hex()}')
            else:
                self.failures += 1
                if not a.retryable:
                    self.errors.append(repr(a))

    def work(self, i):
        rng = random.Random(SEED * 1000 + i)
        while not self.end:
            try:
                c = self.s.client(timeout=120)
                while not self.end:
                    self.take(c.ask(rng.choice(self.texts), text=True))
                c.close()
            except (OSError, Closed) as e:
                if isinstance(e, TimeoutError):
                    self.errors.append('a client hangs')
                select.select([], [], [], 0.02)  # the server was killed
            except Exception as e:
                self.errors.append(repr(e))

    def stop(self):
        self.end = True
        [t.join(130) for t in self.threads]
        assert not any(t.is_alive() for t in self.threads), 'a client hangs'
        assert not self.errors, self.errors[:5]


def C05_C12_kill_server_job_or_compiler():
    rng, n = random.Random(SEED), 50 if LONG else 8
    print(f'# seed {SEED}')
    with Driver() as d:
        s, seen = d.server, set()
        texts = TEXTS[:3] + [second(i) for i in range(40 if LONG else 9)]
        load, kills, killed = Load(s, texts, 6), 0, {'server': 0, 'job': 0, 'compiler': 0}
        while kills < n:
            what = rng.choice(['server', 'job', 'compiler', 'compiler'])
            select.select([], [], [], rng.uniform(0, 0.7))
            tree = proc_tree(s.process.pid)
            seen |= set(tree)
            if what == 'server':
                s.process.kill()
                s.process.wait()
                s.start()
            else:
                victims = [p for p, parent in tree.items() if (parent == s.process.pid) == (what == 'job')]
                if not victims:
                    c = s.client()
                    c.clear()  # so that there is something to compile
                    c.close()
                    continue
                try:
                    os.kill(rng.choice(victims), signal.SIGKILL)
                except ProcessLookupError:
                    continue
            kills += 1
            killed[what] += 1
            if kills % 2:  # something is to be published between two ends
                answers = load.answers
                eventually(lambda: load.answers > answers or load.errors, 'an answer', 60)
        load.stop()
        print('#', killed, load.answers, 'answers', load.failures, 'retryable errors')
        seen |= set(proc_tree(s.process.pid))
        s.stop(signal.SIGKILL)
        eventually(lambda: not [p for p in seen if s.base.encode() in cmdline(p)], 'nothing is left', 10)
        s.no_leftovers()
        s.start()
        for i, t in enumerate(texts):
            c = s.client(timeout=120)
            load.take(c.ask(t, text=True))
            c.close()
        assert not load.errors, load.errors
        for t in rng.sample(texts[3:], 3):
            d2 = ok(ctl('run', '--compare', '--json', '-', input=t.decode(), env={'AUTOFUSE_SOCKET': s.path}))
            assert d2.json()['identical'], d2
        for sample in SAMPLES[:3]:
            compare(s.path, sample)
        st = s.stats()
        assert st['store']['damaged'] == 0 and st['failures'] == 0 and not os.path.exists(s.state + '/lmdb.aside'), st
        assert s.stop() == 0
        assert os.listdir(s.state + '/tmp') == [], os.listdir(s.state + '/tmp')
        s.no_leftovers()


def cmdline(pid):
    try:
        if open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] in 'ZX':
            return b''
        return open(f'/proc/{pid}/cmdline', 'rb').read() + open(f'/proc/{pid}/environ', 'rb').read()
    except OSError:
        return b''


def C12_a_forked_client():
    """Parent and child ask over connections of their own, also where both inherited one: answers never cross."""
    with Server(fake=False) as s:
        c = s.client()
        for t in TEXTS[:2]:
            a = c.ask(t, text=True)
            assert a.kind == RESULT, a
        mine = c.send(TEXTS[0], text=True)
        pid = os.fork()
        if pid == 0:
            try:
                c.sock.close()  # of the child alone: the parent's connection goes on
                d = s.client()
                a = d.ask(TEXTS[1], text=True)
                os._exit(0 if a.kind == RESULT and a.hit == HIT_STORE else 1)
            except BaseException:
                os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0
        assert c.wait(mine).kind == RESULT and c.ask(TEXTS[1], text=True).kind == RESULT
        c.close()


if __name__ == '__main__':
    sys.exit(run([C02_C03_sixty_four_processes_on_an_empty_store, C05_C12_kill_server_job_or_compiler, C12_a_forked_client]))
