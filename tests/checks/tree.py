#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tree's habits as a test: licence lines, folder READMEs, file and function length, formatting, marks of unfinished work."""
import os, re, shutil, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE = ('.c', '.h', '.cpp', '.def', '.py', '.sh', '.yaml', '.j2', '.proto', '.build')
MAX_FILE, MAX_FUNCTION = 600, 50
bad = 0


def fail(text):
    global bad
    bad += 1
    print('not ok ' + text)


def git_files():
    return subprocess.run(['git', '-c', 'safe.directory=*', '-C', ROOT, 'ls-files'], stdout=subprocess.PIPE, text=True, check=True).stdout.split('\n')[:-1]


def check_licence(f, text):
    if f.endswith(CODE) or f.endswith('meson.build'):
        if 'SPDX-License-Identifier: Apache-2.0' not in text[:400]:
            fail(f'{f}: no SPDX line')


def check_marks(f, text):
    marks = '|'.join(['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'])
    for m in re.finditer(r'\b(' + marks + r')\b', text):
        fail(f'{f}:{text.count(chr(10), 0, m.start()) + 1}: {m.group(1)}')


def check_umask(f, text):
    """The mask is the whole process's: who changes it for a moment opens the files that other threads make meanwhile."""
    n = len(re.findall(r'\bumask\(', text))
    if f.endswith('.c') and n > (1 if f.endswith('main.c') else 0):
        fail(f'{f}: umask() belongs at the start of a main()')


def check_lengths(f, text):
    lines = text.split('\n')
    if len(lines) > MAX_FILE + 1:
        fail(f'{f}: {len(lines) - 1} lines, at most {MAX_FILE}')
    start = None
    for i, line in enumerate(lines):
        if re.match(r'^[A-Za-z_].*\)\s*\{$', line) or (line == '{' and i and lines[i - 1].endswith(')')):
            start = i
        elif line.startswith('}') and start is not None:
            if i - start - 1 > MAX_FUNCTION:
                fail(f'{f}:{start + 1}: function of {i - start - 1} lines, at most {MAX_FUNCTION}')
            start = None


def check_readmes(files):
    folders = {f.split('/')[0] for f in files if '/' in f and not f.startswith('.')}
    folders |= {'/'.join(f.split('/')[:2]) for f in files if f.startswith('compiler/') and f.count('/') > 1}
    for d in sorted(folders - {'docs'}):
        if d + '/README.md' not in files:
            fail(f'{d}/: no README.md')


def check_format(files):
    tool = shutil.which('clang-format')
    if not tool:
        fail('clang-format is not installed')
        return
    sources = [os.path.join(ROOT, f) for f in files if f.endswith(('.c', '.h')) and not f.startswith('twin/')]
    r = subprocess.run([tool, '--dry-run', '--Werror', *sources], stderr=subprocess.PIPE, text=True, cwd=ROOT)
    found = (re.match(r'(/[^:]+):\d+:\d+: error: ', l) for l in r.stderr.splitlines())
    wrong = sorted({os.path.relpath(m.group(1), ROOT) for m in found if m})
    for f in wrong:
        fail(f'{f}: not formatted (make format)')


def main():
    files = git_files()
    for f in files:
        path = os.path.join(ROOT, f)
        if not os.path.isfile(path):
            continue
        try:
            text = open(path, encoding='utf8').read()
        except UnicodeDecodeError:
            continue
        check_licence(f, text)
        check_marks(f, text)
        if f.endswith(('.c', '.h')):
            check_lengths(f, text)
            check_umask(f, text)
    check_readmes(set(files))
    check_format(files)
    if not bad:
        print(f'ok {len(files)} files')
    return 1 if bad else 0


sys.exit(main())
