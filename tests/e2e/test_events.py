#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a watcher is told: requests, jobs, fallbacks, environments; that one that does not keep up loses events and slows nobody."""
import os, sys
from afwire import *
from ctl import *


def a_request_is_told_from_submit_to_answer():
    with Server() as s:
        w, c = Watcher(s.path), s.client()
        assert w.start['version'] and w.start['requests'] == 0
        key = c.ask('kernels=a,b').key
        c.ask('kernels=a,b')
        hit = w.wait('request.hit')[0]
        assert hit['fragment'] == key[:32].hex() and hit['environment'] == key[32:].hex() and hit['peer'] == 'test' and hit['uid'] == os.getuid()
        miss, done = w.named('request.miss'), w.named('request.done')
        assert len(miss) == 1 and len(done) == 1 and miss[0]['fragment'] == hit['fragment'] and not done[0]['joined'], w.events
        assert done[0]['compile_us'] > 0
        assert len(w.named('request.submit')) == 2
        jobs = w.wait('job.end', 2, job='compile') + w.wait('job.end', job='plan')
        assert sorted(j['job'] for j in jobs) == ['compile', 'compile', 'plan'] and all(j['ok'] for j in jobs)
        assert {j['what'] for j in jobs} == {'a', 'b', hit['fragment']}
        starts = {j['pid']: j for j in w.named('job.start')}
        assert all(starts[j['pid']]['what'] == j['what'] for j in jobs)
        seq = [e['seq'] for e in w.events]
        assert seq == sorted(seq) and len(set(seq)) == len(seq)
        w.close()
        c.close()


def joined_failed_and_canceled():
    with Server() as s:
        w, a, b = Watcher(s.path), s.client(), s.client()
        r = a.send('kernels=j compile_ms=3000')
        w.wait('job.start', job='compile')
        b.ask('kernels=j compile_ms=3000')
        assert a.wait(r).kind == RESULT
        joined = w.wait('request.joined')
        assert len(joined) == 1 and joined[0]['waiters'] == 2
        assert sorted(e['joined'] for e in w.wait('request.done', 2)) == [False, True]
        assert a.ask('compile=fail').code == 'compile'
        failed = w.wait('request.failed')[0]
        assert failed['code'] == 'compile' and 'told to fail' in failed['text'] and not failed['retryable']
        r = a.send('kernels=h compile=hang')
        w.wait('job.start', what='h')
        a.cancel(r)
        w.wait('request.canceled', request=r)
        ended = w.wait('job.end', what='h')[0]
        assert not ended['ok'] and ended['text']
        for c in (a, b, w):
            c.close()


def an_environment_that_moves():
    with Server() as s:
        c = s.client()
        c.ask('kernels=a')
        w = Watcher(s.path)
        before = c.ask('kernels=a').key[32:].hex()
        s.set_environment('another')

        def moved():
            c.ask('kernels=a')
            return w.named('environment', moved=True)
        e = eventually(moved, 'the change is told')[0]
        assert e['before'] == before and e['environment'] == c.ask('kernels=a').key[32:].hex() and e['toolchain'] == 'host'
        w.close()
        c.close()


def who_does_not_read_loses_events_and_slows_nobody():
    with Server(read_timeout_s=3600) as s:
        deaf = s.client()
        deaf.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        deaf.sock.sendall(frame(WATCH, 1))
        assert deaf.read().kind == WATCH
        c = s.client()
        c.ask('kernels=a')

        def lost():
            for _ in range(500):
                assert c.ask('kernels=a').hit == HIT_STORE
            return c.stats()['watchers']['lost'] > 0
        eventually(lost, 'events were dropped', 120)
        # It hears of it once it reads again.
        def told():
            a = deaf.read()
            return a.kind == EVENT and LOST in a.fields
        eventually(told, 'it is told how many')
        assert c.stats()['in_flight']['requests'] == 0
        deaf.close()
        c.close()


def a_flood_is_told_in_part():
    """So many events about requests in a second; then their number."""
    with Server() as s:
        w, c = Watcher(s.path), s.client(caps=0)
        c.ask('kernels=a')

        def flood():
            for _ in range(12):
                for i in range(500):
                    c.sock.sendall(frame(SUBMIT, 1000 + i, field(CANON, b'kernels=a')))
                for i in range(500):
                    assert c.wait().hit == HIT_STORE
            c.ask('kernels=b')
            return w.named('request.more')
        more = eventually(flood, 'some are left out', 120)
        assert more[0]['n'] > 0 and w.named('request.hit'), more[0]
        c.close()
        w.close()


def only_so_many_watch():
    with Server() as s:
        watchers = [Watcher(s.path) for _ in range(32)]
        c = s.client()
        c.sock.sendall(frame(WATCH, 9))
        a = c.wait(9)
        assert a.kind == ERROR and a.code == 'busy' and a.retryable
        watchers.pop().close()

        def free():
            c.sock.sendall(frame(WATCH, 10))
            return c.wait(10).kind == WATCH
        eventually(free, 'a place is free again')
        for w in watchers:
            w.close()
        assert s.stop() == 0
        c.close()


def fallbacks_by_the_senders_names():
    with Server(fake=False) as s:
        w = Watcher(s.path)
        node = {'name': 'm', 'op': 'opaque', 'inputs': ['x', 'y'], 'attrs': {}, 'origin': 'aten.mm.default',
                'outputs': [{'name': 'u', 'dtype': 'float32', 'shape': [4, 4]}]}
        f = json.loads(fragment([('t', 'abs', ['x'], 'float32', [4, 8], {})], ['x', 'y'], ['t', 'u']))
        f['nodes'].append(node)
        ok(ctl('compile', '-', input=json.dumps(f), env={'AUTOFUSE_SOCKET': s.path}))
        e = w.wait('fallback')
        assert len(e) == 1 and e[0]['line'].startswith('Fallback aten.mm.default $reason: '), e
        w.close()


sys.exit(run([a_request_is_told_from_submit_to_answer, joined_failed_and_canceled, an_environment_that_moves,
              who_does_not_read_loses_events_and_slows_nobody, a_flood_is_told_in_part, only_so_many_watch, fallbacks_by_the_senders_names]))
