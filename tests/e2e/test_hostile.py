#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm or are broken, and what they may cost others: memory, slots, time. With the real job program where the
compiler reads what they send. AF_LONG=1 tries ten times as much."""
import os, random, re, socket, struct, sys, threading, time
from afwire import *
from ctl import *

LONG = 10 if os.environ.get('AF_LONG') else 1
SEED = int(os.environ.get('AF_SEED', '1'))
GOOD = {'invalid', 'toolchain', 'compile', 'too_large'}  # what wrong input may be answered with
NAMES = ['../../../../tmp/x', '/etc/passwd', 'a"b\\c', "'; rm -rf / #", '*/ #error no /*', 'line\nbreak', '\r\n#include </dev/zero>', '%s%n%p', '$(id)',
         'ü☃\u202e', '{{ x }}', '{% raw %}', 'n' * 300, '..', '.', ' ', '\t', '??/', '\\', 'R"(', ')"', '__attribute__((constructor))']


def rss_mib(pid):
    return int(re.search(r'VmRSS:\s+(\d+)', open(f'/proc/{pid}/status').read()).group(1)) // 1024


class Bystander:
    """A client that goes on asking for the same while others do their worst; it is always answered, and soon."""

    def __init__(self, server, what, text=False):
        self.server, self.what, self.text, self.stop, self.n, self.worst, self.error = server, what, text, False, 0, 0, None
        self.thread = threading.Thread(target=self.work)

    def work(self):
        try:
            while not self.stop:
                begin = time.monotonic()
                c = self.server.client()
                a = c.ask(self.what, text=self.text)
                assert a.kind == RESULT and a.hit == HIT_STORE, a
                a.bundle()
                c.close()
                self.worst, self.n = max(self.worst, time.monotonic() - begin), self.n + 1
                select.select([], [], [], 0.005)
        except Exception as e:
            self.error = e

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stop = True
        self.thread.join(60)
        if exc[0] is None:
            assert self.error is None, self.error
            assert self.n > 0 and self.worst < 5, (self.n, self.worst)


def requests_that_wait_hold_bounded_memory():
    with Server(receive_mib=64, jobs=1) as s:
        c = s.client()
        begin, n = rss_mib(s.process.pid), 30
        ids = {c.send(b'plan=hang big=' + b'y' * (10 << 20) + b' n=%d' % i) for i in range(n)}
        refused = set()
        d = s.client()
        while d.stats()['requests'] < n or d.stats()['memory']['receive_bytes']:
            r, _, _ = select.select([c.sock], [], [], 0.02)
            if not r and len(c.buf) < 32:
                continue
            a = c.wait()
            assert a.code == 'busy' and a.retryable and 'too many large requests' in a.text, a
            refused.add(a.request)
        st = d.stats()
        assert st['in_flight']['requests'] + len(refused) <= n and st['in_flight']['requests'] >= 3, st
        assert st['memory']['held_bytes'] <= 2 * 64 << 20, st['memory']  # and the queued job's copy
        assert rss_mib(s.process.pid) - begin < 3 * 64, rss_mib(s.process.pid)
        for i in ids:
            c.cancel(i)
        eventually(lambda: d.stats()['in_flight']['requests'] == 0, 'all are canceled')
        eventually(lambda: d.stats()['memory']['held_bytes'] == 0, 'nothing is held')
        big = b'plan=fail big=' + b'z' * (60 << 20)  # alone it may be as large as a frame
        a = d.ask(big)
        assert a.code == 'invalid', a
        a = d.ask('kernels=a')
        assert a.kind == RESULT, a
        eventually(lambda: d.stats()['memory']['held_bytes'] == 0, 'nothing is held')
        c.close(), d.close()
        s.no_leftovers()


def a_thousand_connections_of_which_a_hundred_send_garbage():
    rng = random.Random(SEED)
    with Server() as s:
        assert s.client().ask('kernels=a').kind == RESULT
        with Bystander(s, 'kernels=a'):
            cs = [Client(s.path, hello=False) for _ in range(1000)]
            for i, c in enumerate(cs):
                if i % 10 == 0:
                    c.sock.sendall(bytes(rng.randrange(256) for _ in range(rng.randrange(32, 400))))
                else:
                    c.sock.sendall(frame(HELLO, body=hello_body()) + frame(SUBMIT, 7, field(CANON, b'kernels=a')))
            good = 0
            for i, c in enumerate(cs):
                if i % 10 == 0:
                    a = c.read()
                    assert a.kind == ERROR and a.code in ('protocol', 'version', 'too_large'), a
                else:
                    assert c.read().kind == HELLO
                    a = c.wait(7)
                    assert a.kind == RESULT, a
                    good += 1
                c.close()
            assert good == 900
        st = s.stats()
        assert st['protocol_errors'] + st['connections_refused'] >= 100 - 1, st
        eventually(lambda: s.stats()['in_flight']['connections'] == 1, 'all are gone')


def C10_clients_that_vanish_at_random():
    """In mid-frame, while planned, compiled, stored, answered; nothing is left over."""
    rng = random.Random(SEED)
    with Server(jobs=2) as s:
        fds = len(os.listdir(f'/proc/{s.process.pid}/fd'))
        for i in range(150 * LONG):
            c = s.client()
            words = f'kernels=v{i},shared{i % 7} size={rng.choice([10, 9000])} plan_ms={rng.choice([0, 3])} compile_ms={rng.choice([0, 5, 10000])}'
            data = b''.join(frame(SUBMIT, k, field(CANON, words.encode() + b' n=%d' % k)) for k in range(1, 4))
            c.sock.sendall(data[:rng.choice([len(data), rng.randrange(len(data))])])
            if rng.randrange(2):
                select.select([], [], [], rng.random() * 0.02)
            if rng.randrange(3) == 0:
                c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            c.close()
        begin = time.monotonic()
        idle = {'requests': 0, 'fragments': 0, 'kernels': 0}
        eventually(lambda: idle.items() <= s.stats()['in_flight'].items() and s.stats()['jobs']['running'] == 0, 'nothing is under way')
        assert time.monotonic() - begin < 3
        s.no_leftovers(3)
        st = s.stats()
        assert st['memory']['held_bytes'] == 0 and st['memory']['receive_bytes'] == 0 and st['jobs_died'] == 0, st
        open_fds = len(os.listdir(f'/proc/{s.process.pid}/fd')) - st['memory']['bundles']
        assert open_fds <= fds + 2, (fds, open_fds)


def canonical_forms(state):
    """Those of the store's fragments, read from its file."""
    data, out = open(state + '/lmdb/data.mdb', 'rb').read(), set()
    for m in re.finditer(b'AFC1', data):
        n = struct.unpack_from('<I', data, m.start() - 4)[0]
        if 0 < n < 1 << 20:
            out.add(data[m.start():m.start() + n])
    return sorted(out)


def mutate(rng, canon):
    b = bytearray(canon)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at, how = rng.randrange(len(b)), rng.randrange(6)
        if how == 0:
            b[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            b[at] = rng.choice([0, 1, 2, 127, 128, 255])
        elif how == 2:
            b[at:at + 4] = struct.pack('<I', rng.choice([0, 1, 2, 3, 0xffffffff, 0x7fffffff, 65536, rng.randrange(64)]))
        elif how == 3:
            b[at:at + 8] = struct.pack('<q', rng.choice([0, 1, -1, 2**31, 2**40, 2**62, -2**63, 2**63 - 1, rng.randrange(5000)]))
        elif how == 4:
            del b[at:at + rng.randrange(1, 9)]
        else:
            b[at:at] = canon[at:at + rng.randrange(1, 40)]
    return bytes(b)


def mutated_canonical_forms():
    """Thousands of forms that no client of ours sends: each is answered or refused by name; no job dies; others are served."""
    rng, counts = random.Random(SEED), {}
    with Server(fake=False, plan_timeout_s=60) as s:
        c = s.client()
        texts = [open(p, 'rb').read() for p in SAMPLES]
        for t in texts:
            a = c.ask(t, text=True)
            assert a.kind == RESULT, a
        # The file also has pages that no tree holds any more, with parts of records.
        forms = [f for f in canonical_forms(s.state) if c.ask(f, lookup=True).kind == RESULT]
        assert len(forms) == len(texts), len(forms)
        with Bystander(s, texts[0], text=True):
            for i in range(200 * LONG):
                b = mutate(rng, rng.choice(forms))
                a = c.ask(b, lookup=False)
                counts[a.code] = counts.get(a.code, 0) + 1
                if a.kind == RESULT:
                    a.bundle()
                else:
                    assert a.code in GOOD and not a.retryable and a.text and all(x == '\n' or x.isprintable() for x in a.text), (i, b.hex(), a)
        st = c.stats()
        assert st['jobs_died'] == 0 and st['jobs_timed_out'] == 0 and st['retries'] == 0, st
        print('#', counts)
        c.close()
        s.no_leftovers()


def C32_texts_that_are_no_fragments():
    """Each ends in one clear answer; others are served meanwhile."""
    nested = b'{"schema": "autofuse.fragment/1", "nodes": ' + b'[' * 100000 + b']' * 100000 + b'}'
    texts = {'binary': bytes(range(256)), 'no utf-8': SMALL.replace('"test"', '"\udcff\udc80"').encode('utf-8', 'surrogateescape'),
             'overlong': SMALL.encode().replace(b'"test"', b'"\xc0\xaf"'), 'surrogate': SMALL.encode().replace(b'"test"', b'"\xed\xa0\x80"'),
             'nul': SMALL.encode().replace(b'"test"', b'"a\0b"'), 'deep': nested, 'deep objects': b'{"a":' * 100000,
             'long': b'[' + b'0,' * (30 << 20) + b'0]', 'blank': b' ' * (63 << 20), 'empty': b'',
             'many nodes': SMALL.encode().replace(b'"nodes": [', b'"nodes": [' + b'{},' * 1000000),
             'long number': SMALL.encode().replace(b'[4, 8]', b'[' + b'9' * (1 << 20) + b']', 1),
             'long name': SMALL.encode().replace(b'"x"', b'"' + b'x' * (1 << 20) + b'"')}
    with Server(fake=False) as s:
        assert s.client().ask(SMALL.encode(), text=True).kind == RESULT
        with Bystander(s, SMALL.encode(), text=True):
            for name, text in texts.items():
                c, begin = s.client(timeout=120), time.monotonic()
                a = c.ask(text, text=True)
                assert a.kind == ERROR and a.code in ('invalid', 'too_large') and not a.retryable, (name, a)
                assert 0 < len(a.text) < 20000, (name, len(a.text))
                assert time.monotonic() - begin < 30, name
                c.close()
        st = s.stats()
        assert st['jobs_died'] == 0 and st['memory']['receive_bytes'] == 0, st
        s.no_leftovers()


def C20_names_are_only_names():
    """No name becomes a path, a symbol or source text."""
    names = NAMES
    with Server(fake=False) as s:
        plain = ctl('compile', '--json', '-', input=SMALL, env={'AUTOFUSE_SOCKET': s.path})
        key = ok(plain).json()[0]
        frags = []
        for i, n in enumerate(names):
            f = json.loads(SMALL)
            other = names[(i + 1) % len(names)]
            m = {'x': n, 'y': other, 't': n + '.t', 'u': other + '.u'}
            f['name'] = n
            for v in f['inputs']:
                v['name'] = m[v['name']]
            for node in f['nodes']:
                node['name'], node['origin'] = n + node['name'], other
                node['inputs'] = [m[x] for x in node['inputs']]
                for o in node['outputs']:
                    o['name'] = m[o['name']]
            f['outputs'] = [m[x] for x in f['outputs']]
            frags.append(json.dumps(f))
        for n, f in zip(names, frags):
            d = ok(ctl('run', '--compare', '--json', '-', input=f, env={'AUTOFUSE_SOCKET': s.path}))
            assert d.json()['identical'], (n, d)
            d = ok(ctl('compile', '--json', '-', input=f, env={'AUTOFUSE_SOCKET': s.path})).json()[0]
            assert d['fragment'] == key['fragment'] and d['hit'] != 'compiled', (n, d, key)
        st = s.stats()
        assert st['kernel_compiles'] == 1 and st['fragment_compiles'] == 1, st


if __name__ == '__main__':
    sys.exit(run([requests_that_wait_hold_bounded_memory, a_thousand_connections_of_which_a_hundred_send_garbage, C10_clients_that_vanish_at_random,
                  mutated_canonical_forms, C32_texts_that_are_no_fragments, C20_names_are_only_names]))
