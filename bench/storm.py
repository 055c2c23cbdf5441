#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""64 ranks ask for the same 500 fragments, each in another order, of a server that has nothing: what is compiled, and how busy the job slots are.
The compiler is a stand-in that sleeps 200 ms (tests/e2e/fakejob: plan and compile jobs are real processes, their work is not). For comparison
8 processes with 50 sources each through ccache and sccache, the same sleep; the stand-in counts."""
import argparse, hashlib, json, os, random, shutil, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
p = argparse.ArgumentParser(description=__doc__)
p.add_argument('--build', default='build')
p.add_argument('--ranks', type=int, default=64)
p.add_argument('--fragments', type=int, default=500)
p.add_argument('--no-peers', action='store_true')
args = p.parse_args()
os.environ['AF_BUILD_ROOT'] = os.path.abspath(args.build)
sys.path.insert(0, os.path.join(ROOT, 'tests', 'e2e'))
from afwire import *  # noqa: E402

SLEEP_MS, SLOTS, SHARED = 200, 4, 50
GCC = shutil.which('gcc', path='/usr/bin:/bin')


def figure(name, value, unit, **more):
    print(json.dumps({'name': name, 'value': value, 'unit': unit, **more}), flush=True)


def words(i):
    return f'kernels=own{i},shared{i % SHARED} size=6000 compile_ms={SLEEP_MS}'


def rank(path, seed, go, out):
    order = list(range(args.fragments))
    random.Random(seed).shuffle(order)
    c = Client(path, timeout=600)
    os.read(go, 1)
    ids = {c.send(words(i)): i for i in order}
    digest = [None] * args.fragments
    while ids:
        a = c.wait()
        i = ids.pop(a.request)
        assert a.kind == RESULT, a
        binaries = list(a.binaries().values())
        names = {b[:b.index(b'\0')].decode() for b in binaries}
        assert names == {f'own{i}', f'shared{i % SHARED}'} and all(len(b) == 6000 for b in binaries), (i, names)
        digest[i] = hashlib.sha256(b''.join(sorted(binaries))).hexdigest()
    os.write(out, hashlib.sha256(''.join(digest).encode()).digest())


def storm():
    with Server(jobs=SLOTS) as s:
        c = s.client()
        c.ask('kernels=first')
        go_read, go_write = os.pipe()
        out_read, out_write = os.pipe()
        pids = []
        for seed in range(args.ranks):
            pid = os.fork()
            if pid == 0:
                try:
                    os.close(go_write)
                    c.sock.close()
                    rank(s.path, seed, go_read, out_write)
                    os._exit(0)
                finally:
                    os._exit(1)
            pids.append(pid)
        os.close(go_read)
        eventually(lambda: c.stats()['in_flight']['connections'] >= args.ranks + 1, 'all ranks are there', 60)
        first, began = c.stats(), time.monotonic()
        os.close(go_write)
        busy, last = [], None
        while True:
            st, now = c.stats(), time.monotonic()
            if st['in_flight']['fragments'] == 0 and st['requests'] >= first['requests'] + args.ranks * args.fragments:
                break
            if st['jobs']['running'] + st['jobs']['queued'] >= SLOTS:
                last = (st['jobs']['busy_us'], now)
            select.select([], [], [], 0.05)
        took = now - began
        for pid in pids:
            assert os.waitpid(pid, 0)[1] == 0, 'a rank failed'
        os.close(out_write)
        answers = os.fdopen(out_read, 'rb').read()
        assert len(answers) == 32 * args.ranks and len({answers[i:i + 32] for i in range(0, len(answers), 32)}) == 1, 'ranks got different answers'
        st = c.stats()
        assert st['kernel_compiles'] - first['kernel_compiles'] == args.fragments + min(SHARED, args.fragments), st['kernel_compiles']
        assert st['failures'] == 0 and st['retries'] == 0, st
        # Until fewer jobs are left than there are slots: what follows can fill no more of them.
        share = (last[0] - first['jobs']['busy_us']) / 1e6 / (SLOTS * (last[1] - began))
        figure('storm_fragment_compiles', st['fragment_compiles'] - first['fragment_compiles'], 'compiles', ranks=args.ranks,
               fragments=args.fragments, kernels=st['kernel_compiles'] - first['kernel_compiles'], answers=args.ranks * args.fragments,
               seconds=round(took, 2), stand_in='tests/e2e/fakejob')
        figure('storm_slots_busy', round(share, 4), 'of the time', slots=SLOTS)


STAND_IN = '''#!/bin/sh
out= prev= compile=
for a; do [ "$prev" = -o ] && out=$a; [ "$a" = -c ] && compile=1; prev=$a; done
for a; do [ "$a" = -E ] && compile=; done
[ "$compile" ] && [ "$out" ] || exec {gcc} "$@"
echo x >> {count}
sleep {s}
cp {object} "$out"
'''


def peer(name, wrap, env):
    """8 processes, each compiles the same 50 sources in an order of its own; how many compiles the stand-in counted."""
    base = tempfile.mkdtemp(prefix='afstorm.')
    try:
        count, driver = base + '/count', base + '/gcc'
        open(base + '/object.c', 'w').write('int x;\n')
        subprocess.run([GCC, '-c', base + '/object.c', '-o', base + '/object.o'], check=True)
        open(driver, 'w').write(STAND_IN.format(gcc=GCC, count=count, s=SLEEP_MS / 1000, object=base + '/object.o'))
        os.chmod(driver, 0o755)
        open(count, 'w').close()
        for i in range(50):
            open(f'{base}/f{i}.c', 'w').write(f'int f{i}(void) {{ return {i}; }}\n')
        e = {'PATH': '/usr/bin:/bin', 'HOME': base, **{k: v.format(base=base) for k, v in env.items()}}
        pids = []
        for rank in range(8):
            pid = os.fork()
            if pid == 0:
                order = list(range(50))
                random.Random(rank).shuffle(order)
                ok = all(subprocess.run([wrap, driver, '-c', f'{base}/f{i}.c', '-o', f'{base}/r{rank}.{i}.o'], env=e, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL).returncode == 0 for i in order)
                os._exit(0 if ok else 1)
            pids.append(pid)
        assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids), f'{name} failed'
        if name == 'sccache':
            subprocess.run([wrap, '--stop-server'], env=e, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        figure(f'storm_{name}_compiles', len(open(count).readlines()), 'compiles', ranks=8, fragments=50)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def main():
    storm()
    if args.no_peers:
        return
    missing = [n for n in ('ccache', 'sccache') if not os.path.exists('/usr/bin/' + n)]
    if missing and os.geteuid() == 0:
        subprocess.run(['apt-get', 'install', '-y', '--no-install-recommends', *missing], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peer('ccache', '/usr/bin/ccache', {'CCACHE_DIR': '{base}/ccache'})
    peer('sccache', '/usr/bin/sccache', {'SCCACHE_DIR': '{base}/sccache', 'SCCACHE_SERVER_PORT': str(random.randrange(20000, 60000))})


main()
