#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that die: server, job and compiler killed at random points under load; orphans; a full disk; a store that is damaged."""
import os, random, signal, sys, threading, time
from afwire import *

SEED = int(os.environ.get('AF_SEED', '1'))


class Load:
    """Clients that ask for random fragments, again and again; each ends with an answer or a retryable error, and no answer is ever another's."""

    def __init__(self, server, n, words):
        self.server, self.words, self.stop_flag, self.errors, self.answers = server, words, False, [], 0
        self.lock, self.binaries = threading.Lock(), {}
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(n)]
        [t.start() for t in self.threads]

    def check(self, word, a):
        if a.kind == RESULT:
            got = a.binaries()
            with self.lock:
                self.answers += 1
                for key, binary in got.items():
                    if self.binaries.setdefault(key, binary) != binary:
                        self.errors.append(f'{word}: another binary under the same key')
                if len(got) != len(word.split()[0].split(',')):
                    self.errors.append(f'{word}: {len(got)} kernels')
        elif not (a.kind == ERROR and a.retryable):
            self.errors.append(f'{word}: {a}')

    def work(self, seed):
        rng = random.Random(SEED * 1000 + seed)
        while not self.stop_flag:
            try:
                c = self.server.client(timeout=30)
            except (OSError, Closed):
                select.select([], [], [], 0.02)
                continue
            try:
                while not self.stop_flag:
                    word = rng.choice(self.words)
                    self.check(word, c.ask(word))
            except (Closed, ConnectionResetError, BrokenPipeError):
                pass  # the server went: a client sends again
            except Exception as e:
                self.errors.append(repr(e))
            finally:
                c.close()

    def end(self):
        self.stop_flag = True
        [t.join(60) for t in self.threads]
        assert not any(t.is_alive() for t in self.threads), 'a client hangs'
        assert not self.errors, self.errors[:5]


def processes(s, kind):
    """Process ids of the server's jobs ('job'), or of what they started ('compiler'), in one look: compilers live for milliseconds."""
    jobs, others = [], []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            head, _, tail = open(f'/proc/{pid}/stat').read().rpartition(')')
        except OSError:
            continue
        state, parent, _, session = tail.split()[:4]
        if state in 'ZX':
            continue
        if int(parent) == s.process.pid:
            if head.endswith('(fakejob'):  # not one that is forked and not executed yet
                jobs.append(int(pid))
        elif session != pid:
            others.append((int(pid), int(session)))
    return jobs if kind == 'job' else [pid for pid, session in others if session in jobs]


def sessions(s):
    """Every living process of the sessions that were seen as jobs."""
    return [p for p in processes(s, 'job') + processes(s, 'compiler')]


def C05_C12_kill_anything_fifty_times():
    print(f'# seed {SEED}')
    rng = random.Random(SEED)
    words = [f'kernels=k{i},{"shared" + str(i % 3) if i % 2 else "own" + str(i)} size={5000 if i % 2 else rng.choice([10, 300000])} compile_ms={rng.choice([0, 5, 20])} plan_ms={rng.choice([0, 5])}'
             for i in range(40)]
    with Server(jobs=3) as s:
        load, kills, started = Load(s, 8, words), 0, time.monotonic()
        while kills < 50:
            assert time.monotonic() - started < 500
            what = rng.choice(['server', 'job', 'compiler'])
            select.select([], [], [], rng.uniform(0, 0.08))
            if what == 'server':
                s.process.kill()
                s.process.wait()
                kills += 1
                s.start()
                continue
            c = s.client()

            def found():
                victims = processes(s, what)
                if not victims and not c.stats()['jobs']['running']:
                    c.clear()  # so that there is something to compile
                return victims
            victims = eventually(found, f'there is a {what}')
            c.close()
            try:
                os.kill(rng.choice(victims), signal.SIGKILL)
                kills += 1
            except ProcessLookupError:
                pass
        load.end()
        s.stop(signal.SIGKILL)
        s.no_leftovers()
        s.start()
        # What was published is right: every fragment again, and the whole store verifies.
        c = s.client()
        for w in words:
            a = c.ask(w)
            load.check(w, a)
        assert not load.errors, load.errors
        st = c.stats()
        assert st['store']['damaged'] == 0 and not os.path.exists(s.state + '/lmdb.aside'), st['store']
        assert load.answers > 20, load.answers
        c.close()
        assert s.stop() == 0
        s.no_leftovers()


def C13_a_killed_compile_is_retried_once_alone():
    with Server(jobs=4) as s:
        c = s.client()
        a = c.ask('kernels=a compile=once')
        assert a.kind == RESULT, a
        a = c.ask('kernels=b compile=crash')
        assert a.code == 'job_died' and a.retryable and 'signal 9' in a.text, a
        b = c.ask('kernels=d compile=killed')
        assert b.code == 'job_died' and 'signal 9' in b.text, b
        p = c.ask('plan=crash')
        assert p.code == 'job_died' and p.retryable and 'plan job' in p.text
        st = c.stats()
        assert st['retries'] == 4 and st['store']['records']['kernels'] == 1, st
        c.close()


def C02_C03_the_winner_killed_in_mid_compile():
    """All 16 who wait for it are answered."""
    with Server(jobs=2) as s:
        cs = [s.client() for _ in range(16)]
        ids = [c.send('kernels=w compile_ms=300') for c in cs]
        victims = eventually(lambda: processes(s, 'compiler'), 'a compiler runs')
        os.kill(victims[0], signal.SIGKILL)
        answers = [c.wait(i) for c, i in zip(cs, ids)]
        assert all(a.kind == RESULT for a in answers), answers
        assert len({tuple(a.binaries().items()) for a in answers}) == 1
        assert s.stats()['retries'] == 1
        [c.close() for c in cs]


def jobs_end_with_the_server():
    with Server(jobs=4) as s:
        c = s.client()
        for i in range(3):
            c.send(f'kernels=h{i} compile=hang')
        c.send('plan=hang')
        eventually(lambda: len(processes(s, 'job')) == 4 and len(processes(s, 'compiler')) == 3, 'all run')
        pids = sessions(s)
        s.process.kill()
        s.process.wait()
        eventually(lambda: not [p for p in pids if alive(p)], 'all are gone')


def alive(pid):
    try:
        return open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] not in 'ZX'
    except OSError:
        return False


def stopped(pid):
    """Every thread of it: the signal is taken by one, and the others go on until that one has run."""
    try:
        tasks = [open(f'/proc/{pid}/task/{t}/stat').read().rpartition(')')[2].split()[0] for t in os.listdir(f'/proc/{pid}/task')]
    except OSError:
        return False
    return bool(tasks) and all(t in 'TZX' for t in tasks)


def a_new_server_ends_orphans_of_the_old_one():
    """A job that was stopped does not notice that its server died."""
    with Server(jobs=2) as s:
        c = s.client()
        c.send('kernels=h compile=hang')
        eventually(lambda: processes(s, 'compiler'), 'it compiles')
        pids = sessions(s)
        for p in pids:
            os.kill(p, signal.SIGSTOP)
        eventually(lambda: all(stopped(p) for p in pids), 'all of them stand still')
        s.process.kill()
        s.process.wait()
        assert any(alive(p) for p in pids)
        # Someone else's process whose number stands in a stale record is left alone.
        other = subprocess.Popen(['sleep', '1000'], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(f'{s.state}/jobs/{other.pid}', 'w') as f:
            f.write('1 ' + open('/proc/sys/kernel/random/boot_id').read())
        try:
            s.start()
            assert s.stats()['orphans_ended'] >= 1
            eventually(lambda: not [p for p in pids if alive(p)], 'the orphans are gone')
            assert other.poll() is None
            assert str(other.pid) not in os.listdir(s.state + '/jobs')
        finally:
            other.kill()
            other.wait()


def a_dead_job_takes_its_group_along():
    with Server() as s:
        c = s.client()
        c.send('kernels=h compile=hang')
        compilers = eventually(lambda: processes(s, 'compiler'), 'it compiles')
        os.kill(processes(s, 'job')[0], signal.SIGKILL)
        eventually(lambda: not [p for p in compilers if alive(p)], 'its compiler is gone')
        c.close()


def C14_a_full_store_still_answers():
    s = Server(store_map_mib=1, store_max_mib=1)
    try:
        s.start()
        c = s.client()
        a = c.ask('kernels=big size=2000000')
        assert a.kind == RESULT and len(list(a.binaries().values())[0]) == 2000000
        st = c.stats()
        assert st['store']['not_stored'] == 1 and st['store']['records']['kernels'] == 0, st['store']
        a = c.ask('kernels=small')
        assert a.kind == RESULT, a
        st = c.stats()
        assert st['store']['records']['kernels'] == 1, st['store']
        c.close()
    finally:
        s.__exit__(None)


def C14_a_full_disk_and_then_space_again():
    """The limit on file sizes stands for a full disk."""
    import resource
    s = Server()
    try:
        s.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400000, resource.RLIM_INFINITY)))
        c = s.client()
        for i in range(4):
            a = c.ask(f'kernels=f{i} size=300000')
            assert a.kind == RESULT, a
        assert c.stats()['store']['not_stored'] >= 2
        c.close()
        s.stop()
        s.start()
        c = s.client()
        for i in range(4):
            a = c.ask(f'kernels=f{i} size=300000')
            assert a.kind == RESULT, a
        assert c.stats()['store']['not_stored'] == 0
        s.stop()
        s.start()
        c = s.client()
        assert all(c.ask(f'kernels=f{i} size=300000').hit == HIT_STORE for i in range(4))
        c.close()
    finally:
        s.__exit__(None)


def C01_a_damaged_store_heals():
    """Random damage all over the file, page headers too: no server dies of it, every answer is right, most are still hits."""
    rng = random.Random(SEED)
    with Server() as s:
        words = [f'kernels=d{i} size=3000' for i in range(30)]
        c = s.client()
        right, compiles = {w: c.ask(w).binaries() for w in words}, 0
        for n in range(10):
            assert s.stop() == 0, s.tail()
            path = s.state + '/lmdb/data.mdb'
            size = os.path.getsize(path)
            with open(path, 'r+b') as f:
                for _ in range(20):
                    f.seek(rng.randrange(8192, size) if n % 2 else rng.randrange(size // 4096) * 4096 + rng.randrange(32))
                    f.write(bytes([rng.randrange(256)]))
            s.start()
            c = s.client()
            for w in words:
                a = c.ask(w)
                assert a.kind == RESULT and a.binaries() == right[w], a
            st = c.stats()
            assert st['failures'] == 0, st
            compiles += st['kernel_compiles']
        print('#', compiles, 'of 300 compiled again')
        assert 0 < compiles < 250, compiles


def C01_a_file_that_was_cut():
    """At any length, none included: what is missing is compiled again."""
    with Server() as s:
        words = [f'kernels=d{i} size=3000' for i in range(10)]
        c = s.client()
        right = {w: c.ask(w).binaries() for w in words}
        path = s.state + '/lmdb/data.mdb'
        whole = os.path.getsize(path)
        for size in (whole - 1, whole - 4096, whole // 2, 5 * 4096, 8192, 4097, 100, 0):
            assert s.stop() == 0, s.tail()
            os.truncate(path, size)
            s.start()
            c = s.client()
            assert all(c.ask(w).binaries() == right[w] for w in words), size
        s.stop()
        os.unlink(path)
        s.start()
        c = s.client()
        assert all(c.ask(w).binaries() == right[w] for w in words) and c.stats()['kernel_compiles'] == 10


if __name__ == '__main__':
    sys.exit(run([C13_a_killed_compile_is_retried_once_alone, C02_C03_the_winner_killed_in_mid_compile, jobs_end_with_the_server,
                  a_new_server_ends_orphans_of_the_old_one, a_dead_job_takes_its_group_along, C14_a_full_store_still_answers,
                  C14_a_full_disk_and_then_space_again, C01_a_damaged_store_heals, C01_a_file_that_was_cut, C05_C12_kill_anything_fifty_times]))
