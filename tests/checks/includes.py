#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each folder includes only what it may: the include rules of ARCHITECTURE.md as a test.

Reads every `#include "…"` of the tree's own sources. A folder may always include itself; compiler/'s sub-folders follow the stage
order as well.
"""
import os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = {  # folder: what it may include besides itself
    'base': [],
    'numeric': [],
    'proto': ['base', 'numeric'],
    'runtime': ['base', 'numeric', 'proto'],
    'compiler': ['base', 'numeric', 'proto', 'runtime'],
    'importer': ['base', 'numeric', 'proto', 'compiler/graph'],
    'hot': ['base'],
    'cache': ['base'],
    'client': ['base', 'numeric', 'proto', 'runtime', 'compiler/graph', 'hot'],
    'daemon': ['base', 'numeric', 'proto', 'runtime', 'compiler', 'importer', 'hot', 'cache'],
    'twin': ['numeric', 'runtime/host_kernel.h'],
    'tools': None,  # any
    'tests': None,
    'bench': None,
    'examples': ['client'],
}
STAGES = {  # inside compiler/
    'graph': [], 'rewrite': ['graph'], 'reference': ['graph', 'rewrite'], 'fusion': ['graph'], 'schedule': ['graph', 'fusion'],
    'codegen': ['graph', 'fusion', 'schedule'], 'toolchain': ['graph'],
    'driver': ['graph', 'rewrite', 'reference', 'fusion', 'schedule', 'codegen', 'toolchain'],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def allowed(folder, path, target):
    if RULES.get(folder) is None and folder in RULES:
        return True
    if folder not in RULES:
        return False
    if target.startswith(folder + '/'):
        if folder != 'compiler':
            return True
        stage, other = path.split('/')[1], target.split('/')[1]
        return stage == other or other in STAGES.get(stage, [])
    return any(target == a or target.startswith(a + '/') for a in RULES[folder])


def main():
    files = subprocess.run(['git', '-c', 'safe.directory=*', '-C', ROOT, 'ls-files', '*.c', '*.h', '*.cpp', '*.def'], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    known, bad = set(files), 0
    for f in files:
        if '/' not in f or f.startswith(('docs/',)):
            continue
        text = open(os.path.join(ROOT, f), encoding='utf8').read()
        for target in INCLUDE.findall(text):
            if target not in known:
                if os.path.dirname(f) + '/' + target in known:
                    print(f'not ok {f}: "{target}" is not written from the root')
                    bad += 1
                continue  # generated, or a library's
            if not allowed(f.split('/')[0], f, target):
                print(f'not ok {f}: may not include "{target}"')
                bad += 1
    if not bad:
        print(f'ok includes of {len(files)} files follow the rules')
    return 1 if bad else 0


sys.exit(main())
