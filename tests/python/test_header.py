#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package's view of the library is the header's: prepared tables, sizes and offsets of every struct, enums, attributes."""
import os, re, subprocess, sys, tempfile
from afpy import BUILD, ROOT, autofuse, run
from autofuse import errors, fragment
from autofuse._ffi import ffi, lib

sys.path.insert(0, os.path.join(ROOT, 'python'))
import generate

HEADER = open(os.path.join(ROOT, 'client', 'autofuse.h'), encoding='utf-8').read()


def tables_are_the_headers():
    own = open(os.path.join(ROOT, 'python', 'autofuse', '_tables.py'), encoding='utf-8').read()
    assert own == generate.tables(HEADER), 'client/autofuse.h has changed: python/generate.py'


def c_says(lines):
    """What a C program prints that includes the header."""
    with tempfile.TemporaryDirectory() as d:
        with open(d + '/a.c', 'w') as f:
            f.write('#include "client/autofuse.h"\n#include <stdio.h>\nint main(void) {\n' + '\n'.join(lines) + '\nreturn 0;\n}\n')
        subprocess.run(['cc', '-I', ROOT, '-o', d + '/a', d + '/a.c'], check=True)
        return subprocess.run([d + '/a'], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def structs_and_enums_agree():
    names = re.findall(r'^struct (autofuse_\w+) \{', HEADER, re.M)
    enums = re.findall(r'\b(AUTOFUSE_[A-Z0-9_]+)\s*(?:=\s*\d+)?,?\s*(?=[,}/\n]|$)', re.sub(r'/\*.*?\*/', '', ''.join(
        re.findall(r'^enum autofuse_\w+ \{.*?\};|^enum autofuse_\w+ \{[^}]*\}', HEADER, re.M | re.S)), flags=re.S))
    assert len(names) >= 22 and len(enums) >= 54, (names, enums)  # what there was when this was written: the expressions find them
    lines, ours = [], []
    for n in names:
        t = ffi.typeof('struct ' + n)
        lines.append(f'printf("%zu\\n", sizeof(struct {n}));')
        ours.append(str(ffi.sizeof(t)))
        for member, m in t.fields:
            lines.append(f'printf("%zu %zu\\n", offsetof(struct {n}, {member}), sizeof(((struct {n} *)0)->{member}));')
            ours += [str(m.offset), str(ffi.sizeof(m.type))]
    for e in enums:
        lines.append(f'printf("%d\\n", (int){e});')
        ours.append(str(getattr(lib(), e)))
    assert c_says(lines) == ours


def statuses_have_classes():
    values = dict(re.findall(r'(AUTOFUSE_E_\w+) = (\d+)', HEADER))
    assert sorted(map(int, values.values())) == sorted(errors.BY_STATUS), values
    for name, value in values.items():
        assert ffi.string(lib().autofuse_status_name(int(value))).decode().upper() in name, name


def dtypes_and_attributes_agree():
    for name, n in fragment.DTYPE_ID.items():
        assert ffi.string(lib().autofuse_dtype_name(n)).decode() == name and lib().autofuse_dtype_size(n) == fragment.DTYPE_SIZE[name]
    table = re.findall(r'^\s*X\(\w+, "(\w+)", (\w+)\)', open(os.path.join(ROOT, 'proto', 'fragment.h'), encoding='utf-8').read(), re.M)
    assert {k: getattr(fragment, '_' + kind) for k, kind in table} == fragment.ATTRS
    for kind in ('INT', 'INTS', 'FLOAT', 'BOOL', 'STRING', 'DIMS'):
        assert getattr(lib(), 'AUTOFUSE_ATTR_' + kind) == getattr(fragment, '_' + kind)


def importing_is_plain():
    """No framework and no numpy comes with the package, and no C is parsed."""
    code = 'import sys, autofuse; print([m for m in sys.argv[1:] if m in sys.modules])'
    out = subprocess.run([sys.executable, '-c', code, 'torch', 'numpy', 'onnx', 'tensorflow', 'pycparser', 'cffi.cparser'], text=True,
                         env={**os.environ, 'PYTHONPATH': os.path.join(ROOT, 'python')}, stdout=subprocess.PIPE)
    assert out.returncode == 0 and out.stdout.strip() == '[]', out


if __name__ == '__main__':
    sys.exit(run([tables_are_the_headers, structs_and_enums_agree, statuses_have_classes, dtypes_and_attributes_agree, importing_is_plain]))
