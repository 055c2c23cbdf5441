#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each id of tests/behaviours.txt has a test that is named by it and is run, and each test that is named by an id has one of the list.

Named so are: functions of e2e/test_*.py that stand in their file's run([...]), or whose id stands in its IDS (one row of cases each); cases of
tools/behaviours*.c; tests of unit/.
"""
import ast, glob, os, re, sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ID = r'[ACN]\d\d'


def ids_in(name, separator):
    m = re.match(f'({ID}(?:{separator}{ID})*)(?:{separator}|$)', name)
    return m.group(1).split(separator) if m else []


def of_python(path):
    """{id: names}, and functions named by an id that nothing runs."""
    tree = ast.parse(open(path, encoding='utf8').read())
    run = {n.id for c in ast.walk(tree) if isinstance(c, ast.Call) and getattr(c.func, 'id', '') == 'run' for n in ast.walk(c) if isinstance(n, ast.Name)}
    found, idle = {}, []
    for f in tree.body:
        if isinstance(f, ast.FunctionDef) and ids_in(f.name, '_'):
            if f.name not in run:
                idle.append(f.name)
            for i in ids_in(f.name, '_'):
                found.setdefault(i, []).append(f.name)
        elif isinstance(f, ast.Assign) and getattr(f.targets[0], 'id', '') == 'IDS':
            for i in ast.literal_eval(f.value):
                found.setdefault(i, []).append('IDS')
    return found, idle


def of_c(path, pattern):
    return [m.group(1) for m in re.finditer(pattern, open(path, encoding='utf8').read())]


def main():
    listed = [l.split()[0] for l in open(os.path.join(TESTS, 'behaviours.txt'), encoding='utf8') if not l.startswith('#')]
    bad, found, cases = [], {}, set()
    for path in sorted(glob.glob(TESTS + '/e2e/test_*.py')):
        here, idle = of_python(path)
        bad += [f'{os.path.basename(path)}: nothing runs {name}' for name in idle]
        for i, names in here.items():
            found.setdefault(i, []).extend(names)
    for path in glob.glob(TESTS + '/tools/behaviours*.c'):
        for name in of_c(path, r'"([ACN]\d\d [^"]*)"'):
            cases |= set(ids_in(name, ' '))
    for name in of_c(TESTS + '/e2e/test_behaviours.py', r"f'([ACN]\d\d [^'=]*)=\{"):  # a case that is a file
        cases |= set(ids_in(name, ' '))
    for path in glob.glob(TESTS + '/unit/*/test_*.c'):
        for name in of_c(path, r'\bTest\(\w+, ([ACN]\d\d_\w+)'):
            for i in ids_in(name, '_'):
                found.setdefault(i, []).append(name)
    rows = {i for i, names in found.items() if 'IDS' in names}
    bad += [f'{i} of a row of cases has no case' for i in sorted(rows - cases)] + [f'{i} has cases, and no row' for i in sorted(cases - rows)]
    bad += [f'{i} has no test' for i in listed if i not in found] + [f'{i} is not listed: {found[i]}' for i in sorted(set(found) - set(listed))]
    bad += [f'{i} is listed twice' for i in set(listed) if listed.count(i) > 1]
    n = sum(len(names) for names in found.values())
    for text in bad:
        print('not ok ' + text)
    if not bad:
        print(f'ok {len(listed)} ids, {n} tests named by them')
    return 1 if bad else 0


sys.exit(main())
