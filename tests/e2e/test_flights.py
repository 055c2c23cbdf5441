#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a request becomes: compiled once, joined, served from memory and from the store; environments; texts; progress; deadlines."""
import json, os, sys, threading, time
from afwire import *


def expect(a, kind=RESULT, code=None):
    assert a.kind == kind and a.code == code, a
    return a


def text(words):
    return json.dumps({'fake': words})


def one_request():
    with Server() as s:
        c = s.client()
        a = expect(c.ask('kernels=a,b'))
        assert a.hit == HIT_COMPILED
        binaries = a.binaries()
        assert len(binaries) == 2 and all(len(b) == 100 for b in binaries.values())
        b = expect(c.ask('kernels=a,b'))
        assert b.hit == HIT_STORE and b.key == a.key and b.binaries() == binaries
        st = c.stats()
        assert st['fragment_compiles'] == 1 and st['kernel_compiles'] == 2 and st['hits'] == 1, st
        c.close()


def restart_serves_from_the_store():
    with Server() as s:
        first = {w: s.client().ask(w).binaries() for w in ('kernels=a', 'kernels=a,b size=200000')}
        assert s.stop() == 0
        s.start()
        c = s.client()
        for w, binaries in first.items():
            a = expect(c.ask(w))
            assert a.hit == HIT_STORE and a.binaries() == binaries
        st = c.stats()
        assert st['fragment_compiles'] == 0 and st['kernel_compiles'] == 0 and st['hits_store'] == 2, st
        c.close()


def C02_sixty_four_clients_at_a_barrier():
    """One compile per fragment and per kernel, every answer right."""
    with Server(jobs=2) as s:
        words = [f'kernels=k{i},shared size=5000 compile_ms=50' for i in range(6)]
        barrier, results, errors = threading.Barrier(64), [], []

        def client(n):
            try:
                c = s.client()
                barrier.wait()
                ids = {c.send(words[(n + i) % 6]): words[(n + i) % 6] for i in range(6)}
                for _ in ids:
                    a = expect(c.wait())
                    results.append((ids[a.request], a.hit, tuple(sorted(a.binaries().items()))))
                c.close()
            except Exception as e:
                errors.append(repr(e))
        threads = [threading.Thread(target=client, args=(n,)) for n in range(64)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not errors, errors[:3]
        assert len(results) == 64 * 6
        for w in words:
            assert len({r[2] for r in results if r[0] == w}) == 1
        st = s.stats()
        assert st['fragment_compiles'] == 6 and st['kernel_compiles'] == 7, st
        assert st['requests'] == 384 and st['joined'] + st['hits'] == 378, st


def texts():
    with Server() as s:
        c = s.client()
        a = expect(c.ask(text('kernels=a'), text=True))
        assert a.hit == HIT_COMPILED and SLOT_MAP in a.fields
        b = expect(c.ask(text('kernels=a'), text=True))
        assert b.hit == HIT_STORE and b.fields[SLOT_MAP] == a.fields[SLOT_MAP] and b.key == a.key
        # Another text of the same fragment joins it by its key; the canonical bytes hit too.
        d = expect(c.ask('  ' + text('kernels=a'), text=True))
        assert d.key == a.key and d.hit == HIT_STORE
        assert expect(c.ask('kernels=a')).hit == HIT_STORE
        st = c.stats()
        assert st['fragment_compiles'] == 1 and st['kernel_compiles'] == 1, st
        s.stop()
        s.start()
        c = s.client()
        assert expect(c.ask(text('kernels=a'), text=True)).hit == HIT_STORE
        assert c.stats()['fragment_compiles'] == 0
        expect(c.ask('no fragment', text=True), ERROR, 'invalid')
        c.close()


def texts_join_the_fragment_under_way():
    with Server(jobs=4) as s:
        c = s.client()
        ids = [c.send('kernels=a compile_ms=500'), c.send(text('kernels=a compile_ms=500'), text=True),
               c.send(' ' + text('kernels=a compile_ms=500'), text=True)]
        answers = {}
        for _ in ids:
            a = expect(c.wait())
            answers[a.request] = a
        assert len({a.key for a in answers.values()}) == 1
        st = c.stats()
        assert st['kernel_compiles'] == 1 and st['fragment_compiles'] == 1, st
        assert SLOT_MAP in answers[ids[1]].fields and SLOT_MAP not in answers[ids[0]].fields
        c.close()


def lookup_only():
    with Server() as s:
        c = s.client()
        expect(c.ask('kernels=a', lookup=True), ERROR, 'not_found')
        expect(c.ask(text('kernels=a'), text=True, lookup=True), ERROR, 'not_found')
        expect(c.ask('kernels=a'))
        assert expect(c.ask('kernels=a', lookup=True)).hit == HIT_STORE
        st = c.stats()
        assert st['fragment_compiles'] == 1, st
        c.close()


def clear():
    with Server() as s:
        c = s.client()
        expect(c.ask('kernels=a'))
        assert c.clear().kind == CLEAR
        assert sum(c.stats()['store']['records'].values()) == 0
        assert expect(c.ask('kernels=a')).hit == HIT_COMPILED
        c.close()


def C14_compile_errors_are_the_same_twice():
    with Server() as s:
        c = s.client()
        for w, code in (('compile=fail', 'compile'), ('plan=fail', 'invalid'), ('plan=invalid', 'invalid'), ('compile=empty', 'compile')):
            a, b = c.ask(w), c.ask(w)
            assert a.code == code and (a.code, a.text, a.retryable) == (b.code, b.text, b.retryable), (a, b)
        assert sum(c.stats()['store']['records'].values()) == 0
        a, b = (c.ask(text('compile=fail'), text=True) for _ in range(2))
        assert a.code == 'compile' and a.text == b.text
        c.close()


def a_refused_plan_is_remembered_after_the_second_run():
    """The same answer, with and without a job; a clear begins anew. So does an environment that is read again: then it takes some more runs."""
    with Server() as s:
        c = s.client()
        for n, (words, is_text) in enumerate((('plan=invalid kernels=x', False), ('no fragment', True)), 1):
            first = expect(c.ask(words, text=is_text), ERROR, 'invalid')

            def remembered():
                a = expect(c.ask(words, text=is_text), ERROR, 'invalid')
                assert (a.text, a.retryable) == (first.text, False), a
                return c.stats()['hits_negative'] >= n
            eventually(remembered, 'it is refused without a job')
        assert c.clear().kind == CLEAR
        hits = c.stats()['hits_negative']
        expect(c.ask('plan=invalid kernels=x'), ERROR, 'invalid')
        assert c.stats()['hits_negative'] == hits
        expect(c.ask('plan=ok kernels=x'))
        c.close()


def C14_a_compile_error_is_remembered_after_the_second_run():
    """With the same text and code; a clear, and another toolchain, begin anew."""
    with Server() as s:
        c = s.client()
        seen = [c.ask('kernels=bad compile=fail') for _ in range(4)]
        assert {(a.code, a.text, a.retryable) for a in seen} == {('compile', seen[0].text, False)}, seen
        st = c.stats()
        assert st['hits_negative'] == 2 and st['kernel_compiles'] == 0, st
        assert expect(c.ask('kernels=good')).hit == HIT_COMPILED
        assert c.clear().kind == CLEAR
        expect(c.ask('kernels=bad compile=fail'), ERROR, 'compile')
        assert c.stats()['hits_negative'] == 2
        expect(c.ask('kernels=bad compile=ok'))  # the compiler has come to reason: what was suspected is forgotten
        expect(c.ask('kernels=killed compile=killed'), ERROR, 'job_died')
        expect(c.ask('kernels=killed compile=killed'), ERROR, 'job_died')
        expect(c.ask('kernels=killed'))
        c.close()


def one_bad_kernel_fails_only_its_fragment():
    with Server(jobs=4) as s:
        c = s.client()
        bad, good = c.send('kernels=bad compile=fail compile_ms=100'), c.send('kernels=good compile_ms=200')
        expect(c.wait(bad), ERROR, 'compile')
        expect(c.wait(good))
        c.close()


def C01_a_missing_kernel_alone_is_recompiled():
    """The bundle is there, one of its kernels is damaged."""
    with Server() as s:
        c = s.client()
        before = expect(c.ask('kernels=a,b size=6000')).binaries()
        s.stop()
        path = s.state + '/lmdb/data.mdb'
        data = bytearray(open(path, 'rb').read())
        damaged = bytes(list(before.values())[0])[:500]
        at = data.find(damaged)
        assert at > 0
        while at > 0:
            data[at + 100] ^= 0x55
            at = data.find(damaged, at + 1)
        open(path, 'wb').write(data)
        s.start()
        c = s.client()
        after = expect(c.ask('kernels=a,b size=6000')).binaries()
        assert after == before
        st = c.stats()
        assert st['store']['damaged'] == 1 and st['kernel_compiles'] == 1 and st['fragment_compiles'] == 0, st
        s.stop()
        s.start()
        c = s.client()
        assert expect(c.ask('kernels=a,b size=6000')).binaries() == before and c.stats()['store']['damaged'] == 0
        c.close()


def C25_a_changed_environment_is_seen_within_a_second():
    with Server() as s:
        c = s.client()
        a = expect(c.ask('kernels=a'))
        time.sleep(1.1)  # the time that an answer may be stale
        s.set_environment('two')
        time.sleep(1.1)
        b = expect(c.ask('kernels=a'))
        assert b.key[:32] == a.key[:32] and b.key[32:] != a.key[32:]
        s.set_environment('one')
        time.sleep(1.1)
        d = expect(c.ask('kernels=a'))
        assert d.key == a.key and d.hit == HIT_STORE
        c.close()


def a_toolchain_that_keeps_changing_ends_in_a_retryable_error():
    with Server() as s:
        c = s.client()
        a = expect(c.ask('compile=changed'), ERROR, 'internal')
        assert a.retryable and 'changed' in a.text
        expect(c.ask('kernels=x'))
        c.close()


def unknown_targets_are_named():
    with Server() as s:
        c = s.client()
        a = expect(c.ask('soc=none'), ERROR, 'toolchain')
        assert 'no such SoC' in a.text
        expect(c.ask('kernels=x'))
        c.close()


def A15_waiters_see_progress():
    with Server() as s:
        c, d = s.client(), s.client()
        i, j = c.send('compile_ms=2500'), d.send('compile_ms=2500')
        hits = {expect(c.wait(i)).hit, expect(d.wait(j)).hit}
        assert hits == {HIT_COMPILED, HIT_JOINED}, hits
        assert c.progress and 'compiling' in c.progress[-1].text and struct.unpack('<I', c.progress[-1].fields[WAITERS])[0] == 2, c.progress
        c.close(), d.close()


def parts_come_as_they_are_ready():
    """The skeleton, then each kernel once it is compiled, to everyone who asked for parts, joined or not; then the whole."""
    with Server(jobs=4) as s:
        c, late, plain = s.client(), s.client(), s.client()
        expect(c.ask('kernels=old'))
        words = 'kernels=old,fast,slow compile_ms=0'
        # The kernel `slow` is under way already, for somebody else, and takes its time.
        other = s.client()
        j = other.send('kernels=slow compile_ms=5000')
        eventually(lambda: s.stats()['in_flight']['kernels'] == 1, 'the slow one compiles')
        i = c.send(words, parts=True)
        k = plain.send(words)
        got = {c: {}, late: {}}

        def read(client, n):
            while len(got[client]) < n:
                a = client.wait()
                assert a.kind == PART, a
                assert struct.unpack('<I', a.fields[N_PARTS])[0] == 4
                got[client][struct.unpack('<I', a.fields[PART_INDEX])[0]] = a
        read(c, 4)
        m = late.send(words, parts=True)
        whole = expect(c.wait(i))
        assert set(whole.binaries().values()) == {got[c][n].fields[BUNDLE] for n in (1, 2, 3)}
        assert all(a.key == whole.key for a in got[c].values())
        a = late.wait()
        while a.kind == PART:
            index = struct.unpack('<I', a.fields[PART_INDEX])[0]
            assert a.fields[BUNDLE] == got[c][index].fields[BUNDLE]
            a = late.wait()
        expect(a), expect(other.wait(j))
        assert plain.wait(k).kind == RESULT  # and no part: it did not ask
        [x.close() for x in (c, late, plain, other)]


def A15_deadlines():
    with Server() as s:
        c = s.client()
        begin = time.monotonic()
        expect(c.ask('compile=hang', deadline=500), ERROR, 'deadline')
        assert 0.4 < time.monotonic() - begin < 3
        s.no_leftovers()
        expect(c.ask('kernels=x'))
        c.close()


def job_timeouts():
    with Server(plan_timeout_s=1, compile_timeout_s=1) as s:
        c = s.client()
        for w in ('plan=hang', 'compile=hang'):
            a = expect(c.ask(w), ERROR, 'job_died')
            assert a.retryable and 'after' in a.text, a
        s.no_leftovers()
        assert c.stats()['jobs_timed_out'] == 2
        c.close()


def C10_cancel_on_disconnect():
    """Within a second unless others wait."""
    with Server() as s:
        c, d = s.client(), s.client()
        c.send('compile=hang'), d.send('compile=hang')
        watcher = s.client()
        eventually(lambda: watcher.stats()['in_flight']['kernels'] == 1 and s.leftovers(), 'it compiles')
        c.close()
        eventually(lambda: watcher.stats()['in_flight']['requests'] == 1, 'one is gone')
        assert watcher.stats()['in_flight']['kernels'] == 1
        begin = time.monotonic()
        d.close()
        eventually(lambda: watcher.stats()['in_flight']['kernels'] == 0 and not s.leftovers(), 'the compile is gone')
        assert time.monotonic() - begin < 1.5
        expect(watcher.ask('kernels=x'))
        watcher.close()


def cancel_frame():
    with Server() as s:
        c = s.client()
        i = c.send('compile=hang')
        eventually(lambda: s.stats()['in_flight']['kernels'] == 1, 'it compiles')
        c.cancel(i)
        expect(c.wait(i), ERROR, 'canceled')
        s.no_leftovers()
        c.cancel(12345)
        expect(c.ask('kernels=x'))
        c.close()


def C13_slots_are_never_exceeded():
    with Server(jobs=3) as s:
        c = s.client()
        ids = [c.send(f'kernels=n{i} compile_ms=60') for i in range(20)]
        seen, d = 0, s.client()
        left = set(ids)
        while left:
            st = d.stats()
            seen = max(seen, st['jobs']['running'])
            assert st['jobs']['running'] <= 3
            r, _, _ = select.select([c.sock], [], [], 0.01)
            while r or len(c.buf) >= 32:
                a = c.read()
                if a.kind == RESULT:
                    left.discard(a.request)
                    if a.fd is not None:
                        os.close(a.fd)
                r, _, _ = select.select([c.sock], [], [], 0)
        assert seen == 3
        c.close(), d.close()


def large_bundles_come_as_one_sealed_memfd():
    with Server() as s:
        c = s.client()
        a = expect(c.ask('size=3000000'))
        assert a.fd is not None
        import fcntl
        assert fcntl.fcntl(a.fd, 1034) & 15 == 15  # F_GET_SEALS
        big = a.bundle()
        b = expect(c.ask('size=3000000'))
        assert b.bundle() == big
        plain = s.client(caps=0)
        d = expect(plain.ask('size=3000000'))
        assert d.fd is None and d.bundle() == big
        small = expect(c.ask('kernels=tiny size=1'))
        assert small.fd is None and BUNDLE in small.fields
        c.close(), plain.close()


if __name__ == '__main__':
    sys.exit(run([one_request, restart_serves_from_the_store, C02_sixty_four_clients_at_a_barrier, texts, texts_join_the_fragment_under_way, lookup_only,
                  clear, C14_compile_errors_are_the_same_twice, a_refused_plan_is_remembered_after_the_second_run,
                  C14_a_compile_error_is_remembered_after_the_second_run, one_bad_kernel_fails_only_its_fragment, C01_a_missing_kernel_alone_is_recompiled,
                  C25_a_changed_environment_is_seen_within_a_second, a_toolchain_that_keeps_changing_ends_in_a_retryable_error, unknown_targets_are_named,
                  A15_waiters_see_progress, parts_come_as_they_are_ready, A15_deadlines, job_timeouts, C10_cancel_on_disconnect, cancel_frame, C13_slots_are_never_exceeded,
                  large_bundles_come_as_one_sealed_memfd]))
