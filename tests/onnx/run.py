#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ONNX node tests of Debian's libonnx-testdata through a private daemon.

Which tests must be `ok` is computed, not picked: all of them, except those that `verify` refuses because an op is not in the table or has no
template for its class, or because a tensor has a dtype that fragments or the vector unit do not have. Anything else (a mismatch, a crash, a time-out, no
clear last line) fails. At least --least tests must be ok, with at most 10% of their nodes on fallback.
"""
import argparse, concurrent.futures, glob, json, os, re, select, shutil, signal, subprocess, sys, tempfile, time

DATA = '/usr/share/libonnx-testdata/data/node'
# This release's expectations cut floats to bfloat16 instead of rounding to nearest even, as the specification and PyTorch have it.
CUT_BFLOAT16 = re.compile(r'test_cast(like)?_FLOAT_to_BFLOAT16(_expanded)?$')
REFUSED = re.compile(r'refused: (op \S+|dtype:? .+|shape.*)')


def start(build, home):
    socket = os.path.join(home, 'core.sock')
    log = open(os.path.join(home, 'log'), 'w')
    daemon = subprocess.Popen([os.path.join(build, 'daemon', 'autofused'), '--socket', socket, '--state-dir', os.path.join(home, 'state')],
                              stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    deadline = time.monotonic() + 30
    while not os.path.exists(socket):
        if daemon.poll() is not None or time.monotonic() > deadline:
            sys.exit('not ok daemon did not start: ' + open(log.name).read())
        select.select([], [], [], 0.01)
    return daemon, socket


def verify(ctl, socket, test):
    folder = os.path.join(DATA, test)
    cmd = [ctl, 'verify', os.path.join(folder, 'model.onnx'), '--data', folder, '--json', '--socket', socket]
    try:
        r = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return test, None, 'time-out'
    try:
        answer = json.loads(r.stdout)
    except ValueError:
        return test, None, f'exit {r.returncode}: {(r.stderr or r.stdout).strip()[-300:]}'
    return test, answer, r.stderr.strip() if r.returncode not in (0, 1, 3) else ''


def judge(test, answer, trouble):
    """'ok', 'refused', or what is wrong."""
    if answer is None or trouble:
        return trouble or 'no answer'
    result = answer['verdict']
    if result == 'ok' or (CUT_BFLOAT16.match(test) and result.startswith('mismatch')):
        return 'ok' if result == 'ok' else 'refused'
    return 'refused' if REFUSED.match(result) else result


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--build', default=os.environ.get('AF_BUILD_ROOT', 'build'))
    p.add_argument('--least', type=int, default=240)
    p.add_argument('--only', default='')
    p.add_argument('--list', action='store_true', help='print what became of each test')
    a = p.parse_args()
    build = os.path.abspath(a.build)
    ctl = os.path.join(build, 'tools', 'autofusectl')
    tests = sorted(os.path.basename(d) for d in glob.glob(DATA + '/test_*') if a.only in d)
    home = tempfile.mkdtemp(prefix='autofuse-onnx.')
    daemon, socket = start(build, home)
    wrong, n_ok, nodes, fallbacks, reasons = 0, 0, 0, 0, {}
    try:
        with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 2)) as pool:
            for test, answer, trouble in pool.map(lambda t: verify(ctl, socket, t), tests):
                verdict = judge(test, answer, trouble)
                if a.list:
                    print(f"{verdict:8} {test} {answer['verdict'] if answer else ''}")
                if verdict == 'ok':
                    n_ok += 1
                    nodes += answer['nodes_fused'] + answer['nodes_fallback']
                    fallbacks += answer['nodes_fallback']
                elif verdict == 'refused':
                    why = answer['verdict'][:60]
                    reasons[why] = reasons.get(why, 0) + 1
                else:
                    wrong += 1
                    print(f'not ok {test}: {verdict}')
        if daemon.poll() is not None:
            wrong += 1
            print(f'not ok the daemon ended with {daemon.returncode}')
    finally:
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(60)
        except subprocess.TimeoutExpired:
            daemon.kill()
        shutil.rmtree(home, ignore_errors=True)
    print('# refused: ' + ', '.join(f'{n} × {r}' for r, n in sorted(reasons.items(), key=lambda x: -x[1])[:12]))
    print(f'{"ok" if not wrong else "not ok"} {n_ok} of {len(tests)} ONNX node tests are ok, {fallbacks} of their {nodes} nodes on fallback')
    if not a.only:
        good = n_ok >= a.least and fallbacks * 10 <= nodes
        print(f'{"ok" if good else "not ok"} at least {a.least} are ok with at most 10% of the nodes on fallback')
        wrong += not good
    return 1 if wrong else 0


sys.exit(main())
