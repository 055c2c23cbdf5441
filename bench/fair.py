#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""8 ranks with 20 fragments of their own each, beside one client's flood of 2,000: each rank's time over its fair share, which is nine times what it
takes when it is alone (measured before and after each round). Compiles sleep 60 ms (tests/e2e/fakejob)."""
import argparse, json, os, statistics, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
p = argparse.ArgumentParser(description=__doc__)
p.add_argument('--build', default='build')
p.add_argument('--rounds', type=int, default=3)
args = p.parse_args()
os.environ['AF_BUILD_ROOT'] = os.path.abspath(args.build)
sys.path.insert(0, os.path.join(ROOT, 'tests', 'e2e'))
from afwire import *  # noqa: E402

RANKS, FRAGMENTS, FLOOD, SLOTS, SLEEP_MS = 8, 20, 2000, 4, 60


def ask(path, name, n, go, out):
    """In a process of its own: all at once; how long until the last answer."""
    c = Client(path, timeout=600)
    os.read(go, 1)
    begin = time.monotonic()
    left = {c.send(f'kernels={name}.{i} compile_ms={SLEEP_MS}') for i in range(n)}
    while left:
        a = c.wait()
        assert a.kind == RESULT or a.code == 'busy', a
        left.discard(a.request)
    os.write(out, f'{time.monotonic() - begin}\n'.encode())


def start(path, name, n, go, out, close):
    pid = os.fork()
    if pid == 0:
        try:
            for fd in close:
                os.close(fd)
            ask(path, name, n, go, out)
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def together(s, tag, flood, ranks):
    go_read, go_write = os.pipe()
    out_read, out_write = os.pipe()
    flood_go = os.pipe()
    flooder = start(s.path, tag + 'flood', FLOOD, flood_go[0], out_write, [go_write, flood_go[1]]) if flood else None
    pids = [start(s.path, f'{tag}rank{k}', FRAGMENTS, go_read, out_write, [go_write, flood_go[1]]) for k in range(ranks)]
    c = s.client()
    eventually(lambda: c.stats()['in_flight']['connections'] >= ranks + flood + 1, 'all are there', 60)
    os.close(flood_go[1])
    if flood:
        eventually(lambda: c.stats()['in_flight']['requests'] >= FLOOD * 0.9, 'the flood is under way', 60)
    os.close(go_write)
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0
    if flood:
        os.kill(flooder, signal.SIGKILL)
        os.waitpid(flooder, 0)
    [os.close(fd) for fd in (go_read, out_write, flood_go[0])]
    times = [float(x) for x in os.fdopen(out_read).read().split()]
    eventually(lambda: c.stats()['in_flight']['requests'] == 0, 'all is over', 60)
    c.close()
    assert len(times) == ranks, times
    return times


def main():
    with Server(jobs=SLOTS, max_requests=4096) as s:
        s.client().ask('kernels=first')
        worst, alone = [], []
        for r in range(args.rounds):
            before = together(s, f'a{r}', False, 1)[0]
            times = together(s, f'f{r}', True, RANKS)
            after = together(s, f'b{r}', False, 1)[0]
            fair = (RANKS + 1) * (before + after) / 2
            worst.append(max(times) / fair)
            alone.append((before + after) / 2)
        print(json.dumps({'name': 'fair_share_worst', 'value': round(statistics.median(worst), 3), 'unit': 'of the fair-share time', 'all': [round(w, 3) for w in worst],
                          'alone_s': round(statistics.median(alone), 3), 'stand_in': 'tests/e2e/fakejob'}))


main()
