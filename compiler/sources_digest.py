#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a header with the digest of every source that decides what is generated, so that a rebuilt compiler has another environment
digest by itself. Arguments: source root, header, dependency file."""
import glob, hashlib, os, sys

FOLDERS = ['numeric', 'proto', 'runtime', 'compiler']


def main(root, header, depfile):
    files = sorted(os.path.relpath(f, root) for d in FOLDERS for ext in ('c', 'h', 'def')
                   for f in glob.glob(os.path.join(root, d, '**', '*.' + ext), recursive=True))
    h = hashlib.blake2b(digest_size=16)
    for f in files:
        with open(os.path.join(root, f), 'rb') as src:
            data = src.read()
        h.update(f'{len(f)}:{f}:{len(data)}:'.encode() + data)
    with open(header, 'w') as out:
        out.write(f'/* SPDX-License-Identifier: Apache-2.0 */\n#define AF_COMPILER_SOURCES "{h.hexdigest()}"\n')
    with open(depfile, 'w') as out:
        out.write(f'{header}: ' + ' '.join(os.path.join(root, f).replace(' ', '\\ ') for f in files) + '\n')


main(*sys.argv[1:])
