#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is: users, processes, priorities, quotas; jobs belong to those who wait for them. Order and counts, no clocks."""
import os, pwd, sys
from afwire import *

NOBODY = pwd.getpwnam('nobody').pw_uid


class Process:
    """A client in a process of its own, as another user if told. It sends all, then says `sent` and reports answers in the order they come."""

    def __init__(self, path, words, uid=None, priority=0):
        self.read, out = os.pipe()
        self.stay, self.end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.child(path, words, uid, priority, out)
            finally:
                os._exit(1)
        os.close(out)
        os.close(self.stay)
        self.lines = os.fdopen(self.read)
        assert self.lines.readline() == 'sent\n'

    def child(self, path, words, uid, priority, out):
        for fd in set(range(3, 256)) - {out, self.stay}:
            try:
                os.close(fd)  # a connection of the parent's would stay open with its copy
            except OSError:
                pass
        if uid is not None:
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        c = Client(path, timeout=300)
        ids = {c.send(w, text=w.startswith('{'), priority=priority): w for w in words}
        c.sock.sendall(frame(STATS, 1 << 40))  # answered when all have been read
        early = []
        while not early or early[-1].kind != STATS:
            early.append(c.wait())
        os.write(out, b'sent\n')
        for i in range(len(ids)):
            a = early[i] if i < len(early) - 1 else c.wait()
            os.write(out, f'{a.code or "ok"} {a.text or "-"}\n'.encode())
            if a.fd is not None:
                os.close(a.fd)
        os.read(self.stay, 1)
        os._exit(0)

    def answers(self, n):
        return [self.lines.readline().strip() for _ in range(n)]

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.end)
        self.lines.close()
        os.waitpid(self.pid, 0)

    def close_well(self):
        os.close(self.end)
        assert os.waitpid(self.pid, 0)[1] == 0
        self.lines.close()


def hold_the_slot(c, n=1):
    """Nothing starts while these run; they end when the connection is closed."""
    for i in range(n):
        c.send(f'kernels=hold{i} compile=hang')
    eventually(lambda: c.stats()['jobs']['running'] == n and c.stats()['in_flight']['kernels'] == n, 'the slots are held')


def order_of_compiles(s, prefix, n):
    """The kernels' names in the order in which they were compiled, once n that begin so are among them: from the ledger's events."""
    import sqlite3

    def rows():
        db = sqlite3.connect(f'file:{s.state}/ledger.sqlite?mode=ro', uri=True)
        try:
            return [r[0] for r in db.execute("SELECT text FROM event WHERE kind='compile' ORDER BY rowid")]
        except sqlite3.Error:
            return []
        finally:
            db.close()
    return eventually(lambda: (lambda r: r if sum(x.startswith(prefix) for x in r) >= n else None)(rows()), f'{n} compiles in the ledger')


def each_process_gets_its_share_beside_a_flood():
    with Server(jobs=1) as s:
        s.client().ask('kernels=first')
        gate = s.client()
        hold_the_slot(gate)
        flood = Process(s.path, [f'kernels=f{i}' for i in range(60)])
        ranks = [Process(s.path, [f'kernels=r{k}.{i}' for i in range(5)]) for k in range(4)]
        gate.close()
        for r in ranks:
            assert r.answers(5) == ['ok -'] * 5
            r.close_well()
        names = order_of_compiles(s, 'r', 20)
        flood.close()
        last = max(i for i, n in enumerate(names) if n.startswith('r'))
        # 20 of the ranks, at most a fifth as many again of the flood, and what was done when the ranks came.
        assert last <= 2 + 20 + 20, names[:last + 1]


def users_before_processes():
    """C13: another user's one process weighs as much as all of this user's."""
    with Server(jobs=1, allow_uid=NOBODY) as s:
        os.chmod(s.base, 0o755), os.chmod(s.base + '/run', 0o755)
        s.client().ask('kernels=first')
        gate = s.client()
        hold_the_slot(gate)
        mine = [Process(s.path, [f'kernels=m{k}.{i}' for i in range(30)]) for k in range(4)]
        other = Process(s.path, [f'kernels=o{i}' for i in range(20)], uid=NOBODY)
        gate.close()
        assert other.answers(20) == ['ok -'] * 20
        other.close_well()
        names = order_of_compiles(s, 'o', 20)
        [p.close() for p in mine]
        last = max(i for i, n in enumerate(names) if n.startswith('o'))
        assert last <= 2 + 20 + 24, (last, names[:last + 1])


def a_text_costs_what_its_plan_takes():
    """Its job goes over to the fragment that it turns out to be; who asked pays to the end."""
    with Server(jobs=1) as s:
        s.client().ask('kernels=first')
        gate, c = s.client(), s.client()
        hold_the_slot(gate)
        before = c.stats()['fragment_compiles']
        dear = Process(s.path, [f'{{"fake": "kernels= plan_ms=1500 t{i}"}}' for i in range(15)])
        cheap = Process(s.path, [f'kernels= plan_ms=50 c{i}' for i in range(60)])
        gate.close()
        assert cheap.answers(60) == ['ok -'] * 60
        done = c.stats()['fragment_compiles'] - before - 60
        assert done <= 12, done  # two or three take as long as the 60
        cheap.close_well()
        dear.close()
        c.close()


def a_waiting_rank_goes_before_warm_up():
    with Server(jobs=1) as s:
        s.client().ask('kernels=first')
        gate = s.client()
        hold_the_slot(gate)
        warm = Process(s.path, [f'kernels=w{i}' for i in range(30)], priority=255)
        rank = Process(s.path, [f'kernels=r{i}' for i in range(10)])
        gate.close()
        assert rank.answers(10) == ['ok -'] * 10
        rank.close_well()
        names = order_of_compiles(s, 'r', 10)
        warm.close()
        between = [n for n in names[:names.index('r9')] if n.startswith('w')]
        assert len(between) <= 2, names  # 20 starts of the rank's, one of 32 is warm-up's


def a_queued_job_belongs_to_those_who_wait():
    """C10: it goes with the last of them, and counts by the most urgent who is left."""
    with Server(jobs=1) as s:
        s.client().ask('kernels=first')
        gate, a, b, d = s.client(), s.client(), s.client(), s.client()
        hold_the_slot(gate)
        a.send('kernels=shared', priority=200)
        i = b.send('kernels=shared', priority=0)
        a.send('kernels=lonely', priority=0)
        eventually(lambda: d.stats()['in_flight']['requests'] == 4, 'all wait')
        assert d.stats()['in_flight']['fragments'] == 3
        a.close()
        eventually(lambda: d.stats()['in_flight']['fragments'] == 2, 'what nobody wants is gone')
        assert d.stats()['jobs']['queued'] == 1, d.stats()['jobs']
        gate.close()
        assert b.wait(i).kind == RESULT
        assert d.stats()['kernel_compiles'] == 2
        b.close(), d.close()
        s.no_leftovers()


def servers_of_a_host_share_slots():
    """C13: two of them run no more than the host's bound and one each; slots end with their server."""
    name = f'autofused-test-{os.getpid()}'
    with Server(jobs=2, host_jobs=2, host_slots=name) as a, Server(jobs=2, host_jobs=2, host_slots=name) as b:
        c, d = a.client(), b.client()
        for i in range(3):
            c.send(f'kernels=a{i} compile=hang')
        eventually(lambda: c.stats()['jobs']['running'] == 2 and c.stats()['in_flight']['kernels'] == 2, 'both slots are taken')
        for i in range(2):
            d.send(f'kernels=b{i} compile=hang')
        eventually(lambda: (lambda j: j['running'] == 1 and j['queued'] == 1)(d.stats()['jobs']), 'one job of the other server runs')
        for _ in range(20):
            assert d.stats()['jobs']['running'] == 1
        a.process.kill()
        eventually(lambda: d.stats()['jobs']['running'] == 2, 'the slots are free again')
        c.close(), d.close()
        b.no_leftovers()


def quotas_of_a_user():
    with Server(jobs=1, allow_uid=NOBODY, user_requests=20, user_connections=5, user_held_mib=1, max_queue=30) as s:
        os.chmod(s.base, 0o755), os.chmod(s.base + '/run', 0o755)
        gate = s.client()
        hold_the_slot(gate)
        p = Process(s.path, [f'kernels=n{i}' for i in range(25)], uid=NOBODY)
        assert p.answers(5) == ['busy too many requests of this user outstanding'] * 5
        # Others go on.
        i = gate.send('kernels=mine')
        st = eventually(lambda: (lambda x: x if x['in_flight']['requests'] == 22 else None)(gate.stats()), 'all wait')
        big = Process(s.path, [f'kernels=b{i} ' + 'x' * 600000 for i in range(4)])
        assert big.answers(3) == ['busy too many large requests of this user at once'] * 3
        more = Process(s.path, [f'kernels=q{i}' for i in range(60)])
        assert more.answers(53) == ['busy too many fragments under way'] * 53  # 1 + 1 + 20 + 1 are under way, and 7 of these
        gate.close()
        assert p.answers(20) == ['ok -'] * 20 and big.answers(1) == ['ok -']
        assert more.answers(7) == ['ok -'] * 7
        [x.close_well() for x in (p, big, more)]
        # Root is not counted; nobody's sixth connection is one too many.
        cs = [s.client() for _ in range(7)]
        pid = os.fork()
        if pid == 0:
            os.setresuid(NOBODY, NOBODY, NOBODY)
            try:
                mine = [Client(s.path) for _ in range(5)]
                Client(s.path)
            except Closed as e:
                os._exit(0 if 'busy' in str(e) and 'this user' in str(e) and len(mine) == 5 else 2)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        [c.close() for c in cs]
        s.no_leftovers()


if __name__ == '__main__':
    needs_root = [users_before_processes, quotas_of_a_user] if os.geteuid() == 0 else []
    sys.exit(run([each_process_gets_its_share_beside_a_flood, a_text_costs_what_its_plan_takes, a_waiting_rank_goes_before_warm_up, a_queued_job_belongs_to_those_who_wait, servers_of_a_host_share_slots, *needs_root]))
