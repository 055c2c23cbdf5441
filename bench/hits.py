#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hits of every kind against a private server: one JSON object per figure. What each is held against runs in turns with it.

The fragment (bench/hits_fragment.c) has three kernels and a bundle of about 64 KiB; it is built by the C API and in hand, its canonical form and
digest are part of what is timed, where the call makes them. bench/README.md tells what each figure is.
"""
import argparse, json, os, random, shutil, statistics, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
parser.add_argument('--only', default='', help='figures whose name starts so')
parser.add_argument('--no-peers', action='store_true', help='without ccache and sccache')
args = parser.parse_args()
args.build = os.path.abspath(args.build)
os.environ['AF_BUILD_ROOT'] = args.build
sys.path.insert(0, os.path.join(ROOT, 'tests', 'e2e'))
from afwire import Server

HITS, ONCE, CTL = (os.path.join(args.build, p) for p in ('bench/bench_hits', 'bench/bench_hits_once', 'tools/autofusectl'))
CHAINS = [['sigmoid', 'tanh', 'exp'], ['gelu', 'abs', 'exp'], ['abs', 'exp', 'neg', 'relu']]


def figure(name, value, unit, **more):
    print(json.dumps({'name': name, 'value': round(value, 4), 'unit': unit, **more}), flush=True)


def wanted(*names):
    return any(n.startswith(args.only) or args.only.startswith(n) for n in names)


def run(*words, **kw):
    p = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=900, **kw)
    if p.returncode:
        sys.exit(f'{" ".join(map(str, words))}: exit {p.returncode}\n{p.stdout[-2000:]}{p.stderr[-2000:]}')
    return p.stdout


def numbers(text):
    return [float(w) for w in text.split()]


def text_4k():
    """The same fragment as JSON, 4,096 bytes."""
    shape, nodes, value = [64, 1024], [], 'x'
    ops = [op for i, chain in enumerate(CHAINS) for op in chain + ['opaque'] * (i < 2)]
    for i, op in enumerate(ops):
        nodes.append({'name': f'n{i}', 'op': op, 'inputs': [value], 'attrs': {}, 'origin': op,
                      'outputs': [{'name': f'v{i}', 'dtype': 'float32', 'shape': shape}]})
        value = f'v{i}'
    text = json.dumps({'schema': 'autofuse.fragment/1', 'name': 'hits', 'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': shape}],
                       'constants': [], 'nodes': nodes, 'outputs': [value]})
    assert len(text) <= 4096, len(text)
    return text.ljust(4096)


def memo(server, base):
    with open(base + '/text', 'w') as f:
        f.write(text_4k())
    rows = [numbers(run(HITS, server.path, 'memo', base + '/text')) for _ in range(5)]
    figure('hit_memo_handle_us', statistics.median(r[0] for r in rows), 'us')
    figure('hit_memo_text_us', statistics.median(r[1] for r in rows), 'us', text_bytes=4096)


def hot(server, base, size):
    """Every process is new. Returns microseconds of ours."""
    rows = []
    for i in range(400):
        row = numbers(run(HITS, server.path, 'hot', base + '/db', i))
        rows += [row] if row else []
        if len(rows) == 200:
            break
    assert len(rows) >= 50, f'only {len(rows)} processes found the area fresh'
    ours, lmdb, reused, again = (statistics.median(r[k] for r in rows) for k in range(4))
    figure('hit_hot_us', ours, 'us', bundle_bytes=size, processes=len(rows), second_hit_us=round(again, 2))
    figure('hit_hot_over_lmdb', ours / lmdb, 'x', peer='lmdb get and copy to new memory, not verified', peer_us=round(lmdb, 2), ratio=round(ours / lmdb, 3),
           peer_into_used_memory_us=round(reused, 2))
    return ours


def stream(server, base):
    rows = [numbers(run(HITS, server.path, 'stream', base + '/db')) for _ in range(5)]
    ours50, ours99, echo50, echo99 = (statistics.median(r[k] for r in rows) for k in range(4))
    peer = 'echo of 256 B, then map and verify'
    figure('hit_stream_p50_over_echo', ours50 / echo50, 'x', peer=peer, ours_us=round(ours50, 2), peer_us=round(echo50, 2), ratio=round(ours50 / echo50, 3))
    figure('hit_stream_p99_over_echo', ours99 / echo99, 'x', peer=peer, ours_us=round(ours99, 2), peer_us=round(echo99, 2), ratio=round(ours99 / echo99, 3))


def load(server, kind, n, seconds):
    """Hits a second of n processes together."""
    ps = [subprocess.Popen([HITS, server.path, 'load', kind, str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(n)]
    for p in ps:
        assert p.stdout.readline() == 'ready\n', 'a process did not start'
    for p in ps:
        p.stdin.write('\n')
        p.stdin.flush()
    return sum(numbers(p.communicate(timeout=120)[0])[0] for p in ps)


def throughput(server, base):
    echo = subprocess.Popen([HITS, server.path, 'echo', base + '/echo'], stdin=subprocess.PIPE)
    try:
        while not os.path.exists(base + '/echo'):
            pass
        rows = [(load(server, 'stream', 8, 1.5), load(server, f'echo:{base}/echo', 8, 1.5)) for _ in range(3)]
    finally:
        echo.stdin.close()
        echo.wait()
    ours, peer = (statistics.median(r[k] for r in rows) for k in range(2))
    figure('stream_hits_over_echo', ours / peer, 'x', peer='the same 8 clients echoing 256 B', hits_per_s=round(ours), peer_per_s=round(peer), ratio=round(ours / peer, 3))


def hot_rate(server, hit_us):
    rate = statistics.median(load(server, 'hot', 2, 1.5) for _ in range(3))
    figure('hot_hits_per_s', rate, '1/s', processes=2, times_one_first_hit=round(rate * hit_us / 1e6, 3))


def peer_commands(base):
    """{name: (environment, command)}: the bundle's first kernel as its object of 64 KiB, compiled once, so that the next is a hit."""
    if not (os.path.exists('/usr/bin/ccache') and os.path.exists('/usr/bin/sccache')):
        run(ROOT + '/deploy/install-deps', '--bench')
    os.mkdir(base + '/src')
    run(CTL, 'compile', '--offline', '--sources', base + '/src', base + '/text', env={'PATH': '/usr/bin:/bin', 'HOME': base})
    source = sorted(os.path.join(base, 'src', f) for f in os.listdir(base + '/src'))[0]
    compile_to = ['/usr/bin/g++', '-x', 'c++', '-std=gnu++17', '-O2', '-fPIC', '-ffp-contract=off', f'-I{ROOT}/twin', f'-I{ROOT}', '-c', base + '/src/k.cpp', '-o', base + '/k.o']
    for padding in (1, None):  # None: what is left to 64 KiB
        with open(base + '/src/k.cpp', 'w') as f:
            f.write(open(source).read() + f'\nextern "C" const unsigned char af_padding[{padding or 65536 - os.path.getsize(base + "/k.o")}] = {{1}};\n')
        run(*compile_to)
    common = {'PATH': '/usr/bin:/bin', 'HOME': base}
    peers = {'ccache': ({**common, 'CCACHE_DIR': base + '/ccache'}, ['/usr/bin/ccache', *compile_to]),
             'sccache': ({**common, 'SCCACHE_DIR': base + '/sccache', 'SCCACHE_SERVER_PORT': str(random.randrange(20000, 60000))}, ['/usr/bin/sccache', *compile_to])}
    for env, command in peers.values():
        run(*command, env=env)
    return peers


def processes(server, base):
    peers, times = peer_commands(base), {'ours': [], 'shared': [], 'ccache': [], 'sccache': []}
    try:
        for _ in range(12):
            for name, program in ('ours', ONCE), ('shared', ONCE + '_shared'):
                times[name] += numbers(run(HITS, server.path, 'spawn', 10, program, server.path))
            for name, (env, command) in peers.items():
                times[name] += numbers(run(HITS, server.path, 'spawn', 3, *command, env=env))
        stats = run('/usr/bin/ccache', '--print-stats', env=peers['ccache'][0])
        assert 'cache_miss\t1\n' in stats, stats
        hits = json.loads(run('/usr/bin/sccache', '--show-stats', '--stats-format=json', env=peers['sccache'][0]))['stats']['cache_hits']['counts']
        assert sum(hits.values()) == 36, hits
    finally:
        subprocess.run(['/usr/bin/sccache', '--stop-server'], env=peers['sccache'][0], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    mid = {k: statistics.median(v) for k, v in times.items()}
    for name in peers:
        figure('process_hit_vs_' + name, mid[name] / mid['ours'], 'x', peer=f'{name} hit of a 64 KiB object', ours_us=round(mid['ours']), peer_us=round(mid[name]),
               ratio=round(mid[name] / mid['ours'], 3), with_shared_library_us=round(mid['shared']))


def main():
    with Server(fake=False, store_map_mib=64, log_level='info') as server:
        base = server.base
        os.mkdir(base + '/db')
        size = int(run(HITS, server.path, 'prepare', base + '/db'))
        if wanted('hit_memo') or wanted('process_hit'):
            memo(server, base)
        if wanted('hit_hot', 'hot_hits'):
            hit_us = hot(server, base, size)
            hot_rate(server, hit_us)
        if wanted('hit_stream'):
            stream(server, base)
        if wanted('stream_hits'):
            throughput(server, base)
        if wanted('process_hit') and not args.no_peers:
            processes(server, base)


main()
