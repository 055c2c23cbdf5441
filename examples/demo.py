#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole path on a private daemon: 8 client processes at once ask for the six sample fragments, run every kernel on the CPU twin and
compare with the reference interpreter. Prints a table, writes a picture of one fused graph, leaves nothing running."""
import argparse, glob, json, os, select, shutil, signal, subprocess, sys, tempfile, time

CLIENTS = 8
PICTURE_OF = 'torch_gather_add'


def start_daemon(build, home):
    socket = os.path.join(home, 'core.sock')
    log = open(os.path.join(home, 'daemon.log'), 'w')
    daemon = subprocess.Popen([os.path.join(build, 'daemon', 'autofused'), '--socket', socket, '--state-dir', os.path.join(home, 'state')],
                              stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    deadline = time.monotonic() + 30
    while not os.path.exists(socket):
        if daemon.poll() is not None or time.monotonic() > deadline:
            log.flush()
            sys.exit('the daemon did not start:\n' + open(log.name).read())
        select.select([], [], [], 0.01)
    return daemon, socket


def stop_daemon(daemon):
    daemon.send_signal(signal.SIGTERM)
    try:
        daemon.wait(30)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
        sys.exit('the daemon did not end by itself')


def client(ctl, socket, files):
    """One framework process: asks for every fragment in turn."""
    script = 'for f; do "$0" run "$f" --compare --json --socket "$SOCK" || exit 1; done'
    return subprocess.Popen(['sh', '-c', script, ctl, *files], env={**os.environ, 'SOCK': socket}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def collect(clients):
    answers, failed = [], 0
    for c in clients:
        out, err = c.communicate()
        if c.returncode:
            failed += 1
            sys.stderr.write(err)
        at, decoder = 0, json.JSONDecoder()
        while at < len(out.rstrip()):
            answer, at = decoder.raw_decode(out, at)
            answers.append(answer)
            while at < len(out) and out[at].isspace():
                at += 1
    return answers, failed


def table(answers, names):
    rows = [('sample', 'nodes', 'kernels', 'fallbacks', 'compile ms', 'compiled', 'joined', 'hits', 'largest error')]
    for name in names:
        mine = [a for a in answers if os.path.basename(a['file']) == name + '.json']
        hits = [a['hit'] for a in mine]
        a = mine[0]
        rows.append((name, a['nodes'], len(a['kernels']), len(a['fallbacks']), f"{max(m['compile_us'] for m in mine) / 1000:.0f}",
                     hits.count('compiled'), hits.count('joined'), hits.count('store') + hits.count('memo'), f"{max(m['largest_error'] for m in mine):g}"))
    widths = [max(len(str(r[i])) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print('  '.join(f'{str(x):<{w}}' if i == 0 else f'{str(x):>{w}}' for i, (x, w) in enumerate(zip(r, widths))))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--build', default='build')
    build = os.path.abspath(p.parse_args().build)
    ctl = os.path.join(build, 'tools', 'autofusectl')
    here = os.path.dirname(os.path.abspath(__file__))
    files = sorted(glob.glob(os.path.join(here, 'fragments', '*.json')))
    names = [os.path.basename(f)[:-5] for f in files]
    home = tempfile.mkdtemp(prefix='autofuse-demo.')
    try:
        daemon, socket = start_daemon(build, home)
        try:
            start = time.monotonic()
            answers, failed = collect([client(ctl, socket, files) for _ in range(CLIENTS)])
            seconds = time.monotonic() - start
            stats = json.loads(subprocess.run([ctl, 'stats', '--json', '--socket', socket], stdout=subprocess.PIPE, text=True, check=True).stdout)
            picture = os.path.join(build, f'demo_{PICTURE_OF}.svg')
            subprocess.run([ctl, 'explain', os.path.join(here, 'fragments', PICTURE_OF + '.json'), '--svg', picture],
                           env={**os.environ, 'XDG_CACHE_HOME': home}, stdout=subprocess.DEVNULL, check=True)
        finally:
            stop_daemon(daemon)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    table(answers, names)
    for a in {a['name']: a for a in answers}.values():
        for f in a['fallbacks']:
            print(f"  {a['name']}: Fallback {f.get('origin', f['op'])} $reason: {f['reason']}")
    wrong = [a for a in answers if not a['identical']]
    print(f"{CLIENTS} processes, {len(answers)} answers in {seconds:.1f} s: {stats['fragment_compiles']} fragments and {stats['kernel_compiles']} kernels "
          f"compiled, {stats['joined']} requests joined a running compile, {stats['hits']} hits")
    print(f'picture of a fused graph: {os.path.relpath(picture)}')
    if failed or wrong or len(answers) != CLIENTS * len(files):
        sys.exit(f'{failed} clients failed, {len(wrong)} answers differ from the reference')
    print('every answer equals the reference interpreter, bit for bit')


main()
