#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""1,000 clients connected, 100 of them hostile: how much of their throughput the 900 others keep, against the same load going to a sink (a process that reads
and drops). Throughput is answers per second of processor time that the server had: it has one thread and is what everyone waits for, and so another process on
the machine does not count. Rounds alternate; the figure is the median of their ratios (`wall`: the same by the clock)."""
import argparse, json, os, statistics, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
p = argparse.ArgumentParser(description=__doc__)
p.add_argument('--build', default='build')
p.add_argument('--rounds', type=int, default=5)
p.add_argument('--seconds', type=float, default=2)
args = p.parse_args()
os.environ['AF_BUILD_ROOT'] = os.path.abspath(args.build)
sys.path.insert(0, os.path.join(ROOT, 'tests', 'e2e'))
from afwire import *  # noqa: E402

LOAD, TEXT = os.path.join(os.path.abspath(args.build), 'bench', 'bench_load'), 'kernels=hit size=65536'


def load(*words):
    return subprocess.Popen([LOAD, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def cpu_s(pid):
    f = open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()
    return (int(f[11]) + int(f[12])) / os.sysconf('SC_CLK_TCK')


def one(s, server, target):
    """Answers per second of the server's time, and per second, of the good ones while the hostile ones are at target."""
    good = load('good', server, 900, args.seconds, TEXT)
    bad = load('hostile', target, 100, args.seconds + 0.5, TEXT)
    for p in (good, bad):
        assert p.stdout.readline() == 'ready\n'
    before = cpu_s(s.process.pid)
    for p in (bad, good):
        p.stdin.write('go\n')
        p.stdin.flush()
    rate = float(good.stdout.readline())
    used = cpu_s(s.process.pid) - before
    assert good.wait() == 0 and bad.wait() == 0
    return rate * args.seconds / used, rate


def main():
    with Server(log_level='error') as s:
        assert s.client().ask(TEXT).kind == RESULT
        path = s.base + '/sink'
        sink = load('sink', path)
        assert sink.stdout.readline() == 'ready\n'
        try:
            ratios, walls, rates = [], [], []
            for r in range(args.rounds):
                pair = {}
                for target in ((path, s.path) if r % 2 else (s.path, path)):
                    pair[target] = one(s, s.path, target)
                    eventually(lambda: s.stats()['in_flight']['connections'] == 1, 'all are gone', 60)
                ratios.append(pair[s.path][0] / pair[path][0])
                walls.append(pair[s.path][1] / pair[path][1])
                rates.append(pair[path][0])
        finally:
            sink.kill()
            sink.wait()
        st = s.stats()
        assert st['protocol_errors'] > 0 and st['failures'] == 0, st
        print(json.dumps({'name': 'hostile_throughput_kept', 'value': round(statistics.median(ratios), 3), 'unit': 'of the throughput beside a sink',
                          'all': [round(x, 3) for x in ratios], 'wall': round(statistics.median(walls), 3), 'sink_per_cpu_s': round(statistics.median(rates))}))


main()
