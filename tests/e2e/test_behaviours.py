#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numbers through a real server: every id's cases cold, warm in the same process, from the hot area, and after the server was restarted.

The cases are those of tests/tools/behaviours. Three answers must be one: the same bundle, the same bits, equal to the reference and to the
numbers by hand. Then what the store holds (A03): nothing of the process, place or time that made it. AF_LONG=1 takes every case.
"""
import os, re, signal, subprocess, sys, tempfile
from afwire import *

TOOL = os.path.join(BUILD, 'tests', 'tools', 'behaviours')
ENTRIES = os.path.join(BUILD, 'tests', 'tools', 'store_entries')
N18 = os.path.join(ROOT, 'tests', 'fragments', 'symbols_extremes.json')
N27 = os.path.join(ROOT, 'tests', 'fragments', 'symbols_n27.json')
LONG = os.environ.get('AF_LONG') == '1'
# One case per id at least; those of A09 also show N16.
SAMPLE = ['A05 reshape', 'A06 sums of 100i+10j+k float32', 'A07 ones [512, 17] int8', 'A08 -4..4 by -4, 4, -3 int8', 'A09 N16 cast',
          'N01 N13 int8', 'N03 N05 no identity of the reals float16', 'N08 N09 softmax rows of 65 float16', 'N09 ', 'N11 constant and input bfloat16',
          'N12 bfloat16', 'N12 numbers', 'N14 division by zero int8', 'N18 [3,0]', 'N18 extremes', 'N20 N22 N23', 'N25 padded', 'N26 ', 'N27 ', 'N28 ties of 65', 'N30 gather int32']
IDS = ['A05', 'A06', 'A07', 'A08', 'A09', 'N01', 'N03', 'N05', 'N08', 'N09', 'N11', 'N12', 'N13', 'N14', 'N16', 'N18', 'N20', 'N22', 'N23', 'N25', 'N26',
       'N27', 'N28', 'N30']
HITS = {'cold': ('compiled',), 'memo': ('memo',), 'store': ('store',), 'hot': ('hot', 'store'), 'restarted': ('store',)}  # hot: a busy server is asked


def behaviours(server, passes, only):
    """{pass: {case: (hit, bundle, results)}}, {case: [what went wrong]}"""
    args = [TOOL, '--served', server.path, '--passes', passes, '--file', f'N27 a symbol={N27}', '--file', f'N18 extremes of a size with symbols={N18}']
    for o in only:
        args += ['--only', o]
    p = subprocess.run(args, env={'PATH': os.environ['PATH'], 'HOME': server.base}, capture_output=True, text=True, timeout=36000)
    seen, wrong = {}, []
    for line in p.stdout.splitlines():
        if line.startswith('= '):
            name, case, *rest = line[2:].split('\t')
            assert case not in seen.setdefault(name, {}), f'two cases have the name {case}'
            seen[name][case] = tuple(rest)
        elif line.startswith('not ok '):
            wrong.append(line)
    assert p.returncode == 0 or wrong, (p.returncode, p.stdout[-2000:], p.stderr[-2000:])
    return seen, wrong


def ids_of(case):
    return re.match(r'((?:[AN]\d\d )+)', case + ' ').group(1).split()


def entries(state, *texts):
    # An environment's record names what it was made of: the compiler, the rules and the twin where they are installed.
    p = subprocess.run([ENTRIES, state, '--installed', BUILD, '--installed', ROOT, *texts], capture_output=True, text=True, timeout=600)
    assert p.returncode == 0, p
    lines = p.stdout.splitlines()
    found = [l for l in lines if l.startswith(('found ', 'damaged '))]
    assert not found, found[:20]
    rows = {tuple(l.split()[:2]): l.split()[2:] for l in lines if not l.startswith('found ')}
    assert {t for t, _ in rows} >= {'fragments', 'bundles', 'sources', 'kernels', 'texts'}, lines
    return rows


def send_text(server):
    """A text is an entry too: its digest, and where it leads."""
    c = server.client()
    answer = c.ask(open(N27, 'rb').read(), text=True)
    c.close()
    assert answer.hit == HIT_STORE, answer


def stop(server):
    assert server.stop() == 0, server.tail()
    server.no_leftovers()


class Rows:
    """The run that all tests below look at."""

    def __init__(self):
        only = [] if LONG else SAMPLE
        self.server = Server(fake=False, store_map_mib=64)
        with self.server as s:
            self.seen, self.wrong = behaviours(s, 'ahead,cold,memo,store,hot', only)
            self.compiles = s.stats()['fragment_compiles']
            send_text(s)
            stop(s)
            s.start()
            again, wrong = behaviours(s, 'store', only)
            self.seen['restarted'], self.wrong = again.get('store', {}), self.wrong + wrong
            self.compiles_again = s.stats()['fragment_compiles']
            stop(s)
            self.entries = entries(s.state, s.base, os.path.basename(s.base), ROOT, BUILD, '/tmp/', '/proc/')


rows = None


def row(name):
    """A test of one id."""
    def test():
        cases = sorted({c for p in rows.seen.values() for c in p if name in ids_of(c)})
        assert cases, 'no case'
        assert not any(name in ids_of(w[7:]) for w in rows.wrong), [w for w in rows.wrong if name in ids_of(w[7:])][:5]
        for c in cases:
            answers = {p: rows.seen[p].get(c) for p in HITS}
            assert None not in answers.values(), (c, answers)
            assert len({a[1:] for a in answers.values()}) == 1, (c, answers)
            assert all(answers[p][0] in HITS[p] for p in HITS), (c, answers)
    test.__name__ = name
    return test


def C34_a_hit_returns_all_that_the_miss_returned():
    """Whole bundles, byte for byte, empty and 0-d outputs included; most of the last pass came from the hot area."""
    cases = list(rows.seen['hot'])
    assert cases and any('N18' in c for c in cases)
    for c in cases:
        assert len({rows.seen[p][c][1:] for p in HITS}) == 1, c
    assert any(rows.seen['hot'][c][0] == 'hot' for c in cases), 'no hit of the hot area'


def every_case_is_compiled_once():
    assert not rows.wrong, rows.wrong[:5]
    assert rows.compiles == len(rows.seen['cold']) and rows.compiles_again == 0, (rows.compiles, rows.compiles_again, len(rows.seen['cold']))


def A03():
    """The same entries from another place, user's home, directory, time zone and process; nothing in one names where it was made."""
    with tempfile.TemporaryDirectory(prefix='elsewhere.') as d:
        tmp = d + '/a directory of another length for what is temporary'
        os.makedirs(tmp)
        os.makedirs(d + '/server')
        s = Server(fake=False, base=d + '/server', tmp_dir=tmp, jobs=1, store_map_mib=64)
        s.start(cwd=tmp, env={'HOME': tmp, 'TMPDIR': tmp, 'TZ': 'Asia/Tokyo', 'LC_ALL': 'C.UTF-8', 'USER': 'somebody', 'HOSTNAME': 'elsewhere'})
        try:
            seen, wrong = behaviours(s, 'cold', ['A05 reshape', 'N08 N09 softmax rows of 65 float16', 'N18 [3,0]', 'N27'])
            send_text(s)
            stop(s)
        finally:
            s.stop(signal.SIGKILL)
        assert not wrong and len(seen['cold']) == 4, (seen, wrong)
        there = entries(s.state, d, os.path.basename(d), ROOT, BUILD, '/tmp/', '/proc/')
    assert len([k for k in there if k[0] == 'bundles']) == 4, there
    for key, value in there.items():
        assert rows.entries.get(key) == value, (key, value, rows.entries.get(key))
    for case, answer in seen['cold'].items():
        assert answer == rows.seen['cold'][case], case


if __name__ == '__main__':
    rows = Rows()
    sys.exit(run([*map(row, IDS), C34_a_hit_returns_all_that_the_miss_returned, every_case_is_compiled_once, A03]))
