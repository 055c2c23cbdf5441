#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the ledger keeps and answers: why requests missed, what was used most, how long stages took; over frames and by autofusectl."""
import os, sys
from afwire import *
from ctl import *


def history(c, **query):
    request, c.next = c.next, c.next + 1
    c.sock.sendall(frame(HISTORY, request, field(QUERY, json.dumps({'question': 'history', **query}).encode())))
    a = c.wait(request)
    assert a.kind == HISTORY, a
    return json.loads(a.text)


def why(c, tag, key, words=b''):
    """Asks until rules and toolchain are read."""
    def ask():
        request, c.next = c.next, c.next + 1
        c.sock.sendall(frame(WHY, request, field(tag, key) + field(TEXT, words)))
        a = c.wait(request)
        assert a.kind == WHY or (a.code == 'busy' and a.retryable), a
        return json.loads(a.text) if a.kind == WHY else None
    return eventually(ask, 'an answer')


def misses(c):
    return [e['text'] for e in reversed(history(c, kind='miss')['events'])]


def moved(s, c, words, text):
    """The environment's file has another text, and a request shows it."""
    before = c.ask(words).key
    s.set_environment(text)
    return eventually(lambda: (lambda a: a if a.key != before else None)(c.ask(words)), 'the environment moves')


def each_miss_says_why():
    with Server() as s:
        c = s.client()
        first = c.ask('kernels=a')
        assert misses(c) == ['a new fragment']
        second = moved(s, c, 'kernels=a', 'two')
        assert second.hit == HIT_COMPILED and misses(c) == ['a new fragment', 'another environment: file env'], misses(c)
        w = why(c, FRAGMENT, first.key[:32])
        assert w['stored'] and w['why'] == 'it is in the store' and len(w['entries']) == 2, w
        w = why(c, KEY, first.key)
        assert w['entries'][0]['environment'] == first.key[32:].hex() and not w['entries'][0]['current'] and w['entries'][0]['stored'], w
        assert w['entries'][0]['differs'] == [{'name': 'file env', 'here': 'two', 'there': 'one'}], w
        w = why(c, FRAGMENT, bytes(32))
        assert not w['stored'] and w['entries'] == [] and w['why'] == 'a new fragment' and 'nearest' not in w, w
        c.clear()
        c.ask('kernels=a')
        assert misses(c)[-1] == 'a new fragment'
        c.close()


def a_restart_keeps_ingredients():
    with Server(cache_salt='pepper') as s:
        c = s.client()
        key = c.ask('kernels=a').key
        c.close()
        s.stop()
        s.options['cache_salt'] = 'vinegar'
        s.start()
        c = s.client()
        w = why(c, FRAGMENT, key[:32])
        assert not w['stored'] and w['known_fragment'] and w['why'] == 'another environment: salt', w
        assert w['entries'][0]['differs'] == [{'name': 'salt', 'here': 'vinegar', 'there': 'pepper'}] and w['entries'][0]['n_differ'] == 1
        c.close()


def uses_are_counted():
    with Server() as s:
        c = s.client()
        keys = {n: c.ask(f'kernels={n}').key[:32].hex() for n in 'abc'}
        for n, times in (('a', 3), ('b', 30), ('c', 7)):
            for _ in range(times):
                assert c.ask(f'kernels={n}').hit == HIT_STORE
        key = c.ask('kernels=c').key
        c.sock.sendall(frame(TOUCH, 0, field(KEY, key) * 5))
        top = history(c, question='top')['fragments']
        assert [t['fragment'] for t in top] == [keys['b'], keys['c'], keys['a']], top
        assert [t['hits'] for t in top] == [30, 13, 3] and all(t['compiled'] == 1 and t['environments'] == 1 for t in top)
        assert len(history(c, question='top', limit=1)['fragments']) == 1
        c.close()


def history_by_filters():
    with Server() as s:
        c = s.client()
        key = c.ask('kernels=a,b').key
        assert c.ask('compile=fail').code == 'compile'
        for kind, n in (('plan', 2), ('compile', 3), ('request', 1), ('miss', 2), ('failure', 1)):
            events = history(c, kind=kind)['events']
            assert len(events) == n and all(e['kind'] == kind for e in events), (kind, events)
        failure, plan = (history(c, kind=k)['events'][0] for k in ('failure', 'plan'))
        assert failure['text'].startswith('kernel.cpp:1: error: told to fail') and failure['fragment'] == plan['fragment'], (failure, plan)
        mine = history(c, fragment=key[:4].hex())['events']
        assert mine and all(e['fragment'] == key[:32].hex() for e in mine)
        assert history(c, uid=os.getuid() + 1)['events'] == [] and history(c, since_s=1 << 40)['events'] == []
        ids = [e['id'] for e in history(c, limit=3)['events']]
        assert len(ids) == 3 and ids == sorted(ids, reverse=True)
        for bad in (b'', b'[]', b'{}', b'{"question":"drop table"}', b'{"question":"history","kind":"x"}', b'{"question":"history","fragment":"abc"}'):
            request, c.next = c.next, c.next + 1
            c.sock.sendall(frame(HISTORY, request, field(QUERY, bad)))
            assert c.wait(request).code == 'invalid', bad
        c.close()


def stages_and_toolchains():
    with Server(fake=False) as s:
        c = s.client()
        assert c.ask(open(SAMPLES[2]).read(), text=True).kind == RESULT
        summary = history(c, question='summary')
        stages = {x['stage']: x for x in summary['stages']}
        assert {'read', 'rewrite', 'fuse', 'schedule', 'codegen', 'compile', 'publish'} <= set(stages), stages
        assert stages['compile']['us'] > stages['read']['us'] and all(x['n'] >= 1 for x in stages.values())
        env = summary['environments'][0]
        assert env['soc'] == 'Ascend910B2' and env['toolchain'] == 'host' and env['version'] and env['fragments'] == 1
        words = history(c, question='top')['fragments'][0]['words']
        assert ' abs relu exp in float32[' in words, words
        c.close()


def by_its_digest():
    with Server() as s:
        c = s.client()
        key = c.ask('kernels=a').key

        def submit(digest, lookup=False):
            request, c.next = c.next, c.next + 1
            c.sock.sendall(frame(SUBMIT, request, field(FRAGMENT, digest), priority=255))
            return c.wait(request)
        assert submit(key[:32]).hit == HIT_STORE and submit(bytes(32)).code == 'not_found'
        moved(s, c, 'kernels=other', 'two')
        a = submit(key[:32])
        assert a.hit == HIT_COMPILED and a.key[:32] == key[:32] and a.key != key, a
        c.close()


def a_question_whose_asker_leaves():
    with Server() as s:
        for i in range(50):
            c = s.client()
            c.sock.sendall(frame(HISTORY, 1, field(QUERY, b'{"question":"summary"}')))
            c.close()
        c = s.client()
        assert c.ask('kernels=a').kind == RESULT and history(c)['events']
        assert s.stop() == 0
        c.close()


sys.exit(run([each_miss_says_why, a_restart_keeps_ingredients, uses_are_counted, history_by_filters, stages_and_toolchains, by_its_digest,
              a_question_whose_asker_leaves]))
