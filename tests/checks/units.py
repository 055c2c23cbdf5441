#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The systemd units, as built: placeholders filled, and accepted by `systemd-analyze verify` where that is installed."""
import os, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILT = os.path.join(os.environ.get('AF_BUILD_ROOT', os.path.join(ROOT, 'build')), 'systemd')
UNITS = ['autofused.socket', 'autofused.service']


def main():
    bad = 0
    for unit in UNITS:
        text = open(os.path.join(BUILT, unit)).read()
        if '@' in text:
            print(f'not ok {unit}: an @name@ is left unfilled')
            bad += 1
    service = open(os.path.join(BUILT, 'autofused.service')).read()
    for must in ('RuntimeDirectoryPreserve=yes', 'Type=notify', 'NoNewPrivileges=yes'):
        if must not in service:
            print(f'not ok autofused.service: no {must}')
            bad += 1
    tool = shutil.which('systemd-analyze')
    if tool:
        with tempfile.TemporaryDirectory() as d:  # the program need not be installed for its unit to be checked
            for unit in UNITS:
                text = open(os.path.join(BUILT, unit)).read()
                lines = ['ExecStart=/bin/true' if l.startswith('ExecStart=') else l for l in text.splitlines()]
                open(os.path.join(d, unit), 'w').write('\n'.join(lines) + '\n')
            r = subprocess.run([tool, 'verify', *(os.path.join(d, u) for u in UNITS)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            ours = [l for l in r.stdout.splitlines() if 'autofused' in l and 'documentation' not in l.lower() and 'man ' not in l]
            if ours:
                print('not ok systemd-analyze verify: ' + '; '.join(ours)[:500])
                bad += 1
    if not bad:
        print('ok systemd units' + ('' if tool else ' (systemd-analyze is not installed: text only)'))
    return 1 if bad else 0


sys.exit(main())
