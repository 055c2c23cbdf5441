#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compilers that change under a live server or lie to it: with the real job program, and a driver that is a script around g++."""
import json, os, shutil, subprocess, sys, time
from afwire import *
from ctl import *

REAL = shutil.which('g++', path='/usr/local/bin:/usr/bin:/bin')
FIRST = SMALL.encode()


def second(i):
    """Another fragment each time."""
    f = json.loads(SMALL)
    for v in f['inputs']:
        v['shape'] = [4, 100 + i]
    for n in f['nodes']:
        n['outputs'][0]['shape'] = [4, 100 + i]
    return json.dumps(f).encode()


class Driver:
    """A server whose host compiler is the script BASE/bin/cxx. Every run appends a line to BASE/runs."""

    def __init__(self, **options):
        self.server = Server(fake=False, **options)
        self.base = self.server.base
        os.mkdir(self.base + '/bin')
        self.path, self.runs = self.base + '/bin/cxx', self.base + '/runs'
        conf = self.base + '/conf'
        open(conf, 'w').write(f'toolchain.host.driver = {self.path}\n')
        self.server.options['config'] = conf
        self.install('')

    def install(self, before, keep_times=False):
        """before: shell text in front of the real compiler; sees the product's path as $out, empty where a probe runs."""
        text = f'''#!/bin/sh
echo run >> {self.runs}
out= prev=
for a; do [ "$prev" = -o ] && out=$a; prev=$a; done
case $out in *.so) ;; *) out= ;; esac
{before}
exec {REAL} "$@"
'''
        old = os.stat(self.path) if keep_times else None
        with open(self.path + '.new', 'w') as f:
            f.write(text)
        os.chmod(self.path + '.new', 0o755)
        if old:
            os.utime(self.path + '.new', ns=(old.st_atime_ns, old.st_mtime_ns))
        os.rename(self.path + '.new', self.path)
        return text

    def n_runs(self):
        return len(open(self.runs).readlines())

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *exc):
        self.server.__exit__(*exc)


def settle(d):
    """Until an environment is loaded whose files are older than their time stamps' grain: then a hit starts no process at all."""
    c = d.server.client()

    def quiet():
        n = c.stats()['environment_loads']
        end = time.monotonic() + 2.2
        while time.monotonic() < end:
            c.ask(FIRST, text=True)
            select.select([], [], [], 0.2)
        return c.stats()['environment_loads'] == n
    eventually(quiet, 'the environment is settled')
    c.close()


def C25_a_replaced_toolchain_is_never_used_again():
    """Same path, size and mtime; other bytes. Then the first bytes again: hits."""
    with Driver() as d:
        c = d.server.client()
        # Both drivers' texts are equally long; the second compiles with another define, which is another compiler for all we know.
        d.install('set -- "$@" -DAF_TEST_COMPILER=1')
        a = c.ask(FIRST, text=True)
        assert a.kind == RESULT and a.hit == HIT_COMPILED, a
        settle(d)
        n = d.n_runs()
        assert c.ask(FIRST, text=True).hit == HIT_STORE and d.n_runs() == n
        size = os.path.getsize(d.path)
        d.install('set -- "$@" -DAF_TEST_COMPILER=2', keep_times=True)
        assert os.path.getsize(d.path) == size
        # No compile uses the old one, however soon it begins; hits follow within a second.
        b = c.ask(second(0), text=True)
        assert b.kind == RESULT and b.key[32:] != a.key[32:], (a.key, b.key)
        begin = time.monotonic()
        eventually(lambda: c.ask(FIRST, text=True).key[32:] == b.key[32:], 'hits follow')
        assert time.monotonic() - begin < 8  # a second, and one compile on a busy machine
        d.install('set -- "$@" -DAF_TEST_COMPILER=1')
        loads = c.stats()['environment_loads']
        compiles = c.stats()['kernel_compiles']
        eventually(lambda: c.stats()['environment_loads'] > loads or c.ask(FIRST, text=True).key == a.key, 'it looks again')
        e = eventually(lambda: (lambda x: x if x.key == a.key else None)(c.ask(FIRST, text=True)), 'the first key again')
        assert e.hit == HIT_STORE and c.stats()['kernel_compiles'] == compiles, (e, c.stats())
        c.close()


def C25_reinstalled_in_the_same_bytes_it_still_hits():
    with Driver() as d:
        c = d.server.client()
        a = c.ask(FIRST, text=True)
        assert a.kind == RESULT, a
        text = d.install('')  # another inode, another ctime
        st = c.stats()
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            b = c.ask(FIRST, text=True)
            assert b.kind == RESULT and b.key == a.key and b.hit == HIT_STORE, b
            select.select([], [], [], 0.1)
        os.unlink(d.path)
        open(d.path, 'w').write(text)
        os.chmod(d.path, 0o755)
        d.server.stop()
        d.server.start()
        c = d.server.client()
        b = c.ask(FIRST, text=True)
        assert b.key == a.key and b.hit == HIT_STORE and c.stats()['kernel_compiles'] == 0, b
        c.close()


def change(path):
    """Other bytes; path, size, mode and mtime stay. What it was."""
    data, st = open(path, 'rb').read(), os.stat(path)
    at = data.index(b'SPDX')  # in a comment
    write(path, data[:at] + b'spdx' + data[at + 4:], st)
    return data, st


def write(path, data, st):
    with open(path + '.new', 'wb') as f:
        f.write(data)
    os.chmod(path + '.new', st.st_mode)
    os.utime(path + '.new', ns=(st.st_atime_ns, st.st_mtime_ns))
    os.rename(path + '.new', path)


def C25_C26_whatever_a_compile_depends_on_moves_the_key():
    """Subprograms of the compiler, a twin header, rules, templates, SoC files under a live server: what was compiled is not found any more; and
    is again, without a compile, once the old bytes are back."""
    with Driver() as d:
        s, tools, data = d.server, d.base + '/tools', d.base + '/data'
        os.mkdir(tools)
        for part in ('rules', 'twin', 'numeric'):
            if os.path.isdir(os.path.join(ROOT, part)):
                shutil.copytree(os.path.join(ROOT, part), f'{data}/{part}')
        for name in ('cc1plus', 'as', 'ld'):
            real = subprocess.run([REAL, '-print-prog-name=' + name], capture_output=True, text=True).stdout.strip()
            with open(f'{tools}/{name}', 'w') as f:
                f.write(f'#!/bin/sh\n# SPDX\nexec {shutil.which(real)} "$@"\n')
            os.chmod(f'{tools}/{name}', 0o755)
        s.stop()
        s.options['data_dir'] = data
        d.install(f'set -- -B{tools} "$@"')
        s.start()
        c = s.client()
        first = c.ask(FIRST, text=True)
        assert first.kind == RESULT, first
        paths = [tools + '/cc1plus', tools + '/as', data + '/twin/core.h', data + '/rules/soc/Ascend910B2.yaml']
        if os.environ.get('AF_LONG'):
            paths += [tools + '/ld', data + '/rules/fusion/10_elementwise_chain.yaml', data + '/rules/templates/' + sorted(os.listdir(data + '/rules/templates'))[0]]
        for path in paths:
            before = change(path)
            eventually(lambda: c.ask(FIRST, text=True, lookup=True).code == 'not_found', f'{path} counts', 60)
            write(path, *before)
            again = eventually(lambda: (lambda a: a if a.kind == RESULT else None)(c.ask(FIRST, text=True, lookup=True)), f'{path} is back', 60)
            assert again.key == first.key and again.hit == HIT_STORE, (path, again)
        assert c.stats()['kernel_compiles'] == 1, c.stats()
        c.close()


def C26_a_shared_library_of_the_assembler_counts():
    """`as` is a program of its own library: other bytes of that library, and what was compiled is not found any more; the old ones again: hits."""
    with Driver() as d:
        s, tools = d.server, d.base + '/tools'
        os.mkdir(tools)
        real = shutil.which(subprocess.run([REAL, '-print-prog-name=as'], capture_output=True, text=True).stdout.strip())
        open(tools + '/lib.c', 'w').write('const char *mark(void) { return "a library, SPDX"; }\n')
        open(tools + '/as.c', 'w').write('#include <unistd.h>\nconst char *mark(void);\nint main(int n, char **v) { (void)n; return !mark() || execv("' + real + '", v); }\n')
        for what in (['-shared', '-fPIC', 'lib.c', '-o', 'libmark.so'], ['as.c', '-o', 'as', '-L.', '-lmark', f'-Wl,-rpath,{tools}']):
            subprocess.run(['gcc', *what], cwd=tools, check=True)
        s.stop()
        d.install(f'set -- -B{tools} "$@"')
        s.start()
        c = s.client()
        first = c.ask(FIRST, text=True)
        assert first.kind == RESULT, first
        before = change(tools + '/libmark.so')
        eventually(lambda: c.ask(FIRST, text=True, lookup=True).code == 'not_found', 'the library counts', 60)
        second_one = c.ask(FIRST, text=True)
        assert second_one.kind == RESULT and second_one.hit == HIT_COMPILED and second_one.key != first.key, second_one
        write(tools + '/libmark.so', *before)
        again = eventually(lambda: (lambda a: a if a.kind == RESULT and a.key == first.key else None)(c.ask(FIRST, text=True, lookup=True)), 'it is back', 60)
        assert again.hit == HIT_STORE and c.stats()['kernel_compiles'] == 2, again
        c.close()


def C13_compilers_that_are_killed_or_have_no_memory():
    """Reported as that, tried once more alone, not cached, not remembered."""
    ends = {'the driver': ('[ "$out" ] && kill -9 $$', 'Killed'), 'its subprogram': ('[ "$out" ] && { echo "g++: fatal error: Killed signal terminated program cc1plus" >&2; exit 1; }', 'Killed'),
            'memory': ('[ "$out" ] && ulimit -v 60000', 'memory')}
    with Driver(compile_timeout_s=60) as d:
        c = d.server.client()
        for i, (name, (end, word)) in enumerate(ends.items()):
            d.install(end)
            before = c.stats()
            n = 2 if name == 'memory' else 1
            for _ in range(n):
                a = c.ask(second(400 + i), text=True)
                assert a.kind == ERROR and a.code == 'job_died' and a.retryable and word.lower() in a.text.lower(), (name, a)
            after = c.stats()
            assert after['retries'] == before['retries'] + n and after['hits_negative'] == 0, (name, before, after)
            for table in ('bundles', 'kernels'):
                assert after['store']['records'][table] == before['store']['records'][table], (name, table, after)
        d.install('')
        a = eventually(lambda: (lambda x: x if x.kind == RESULT else None)(c.ask(second(400), text=True)), 'an answer')
        d.server.no_leftovers()
        c.close()


def C27_nothing_else_moves_it():
    """Another working directory, HOME, locale, time zone, user environment, process: hits. A SoC of almost the same name is another."""
    with Driver() as d:
        s = d.server
        a = s.client().ask(FIRST, text=True)
        assert a.kind == RESULT, a
        s.stop()
        other = d.base + '/elsewhere'
        os.mkdir(other)
        s.start(env={'HOME': other, 'LC_ALL': 'de_DE.UTF-8', 'LANG': 'tr_TR.UTF-8', 'TZ': 'Asia/Shanghai', 'CPATH': other, 'CXXFLAGS': '-O0', 'TMPDIR': other}, cwd=other)
        c = s.client()
        b = c.ask(FIRST, text=True)
        assert b.kind == RESULT and b.key == a.key and b.hit == HIT_STORE, b
        f = json.loads(FIRST)
        f['target'] = {'soc': 'Ascend910B1'}
        e = c.ask(json.dumps(f), text=True)
        assert e.kind == RESULT and e.key[:32] != a.key[:32] and e.key[32:] != a.key[32:], e
        c.close()


def a_removed_toolchain_is_named():
    with Driver() as d:
        c = d.server.client()
        a = c.ask(FIRST, text=True)
        assert a.kind == RESULT, a
        os.rename(d.path, d.path + '.away')
        a = eventually(lambda: (lambda x: x if x.kind == ERROR else None)(c.ask(second(1), text=True)), 'an error')
        assert a.code == 'toolchain' and d.path in a.text, a
        os.rename(d.path + '.away', d.path)
        a = eventually(lambda: (lambda x: x if x.kind == RESULT else None)(c.ask(second(1), text=True)), 'an answer')
        c.close()


def A14_compilers_that_lie():
    """An error that names what is wrong, the same the second time, nothing cached, nothing left; then a good compiler and an answer."""
    lies = {
        'no file': ('[ "$out" ] && exit 0', 'no output file'),
        'an empty file': ('[ "$out" ] && { : > "$out"; exit 0; }', 'an empty output file'),
        'another file': ('[ "$out" ] && { echo hello > "$out"; exit 0; }', 'no kernel'),
        'an empty library': ('[ "$out" ] && { echo "int x;" | ' + REAL + ' -shared -x c++ - -o "$out"; exit 0; }', 'no kernel'),
        'half a library': ('[ "$out" ] && { ' + REAL + ' "$@"; head -c 3000 "$out" > h; cat h > "$out"; exit 0; }', ''),
        'a link': ('[ "$out" ] && { ln -s /etc/passwd "$out"; exit 0; }', ''),
        'a directory': ('[ "$out" ] && { mkdir "$out"; exit 0; }', ''),
        'a pipe': ('[ "$out" ] && { mkfifo "$out"; exit 0; }', ''),
        'a flood of words': ('[ "$out" ] && { yes "kernel.cpp:1: error: no" | head -c 100000000 >&2; exit 1; }', 'error: no'),
        'words that are no text': ('[ "$out" ] && { printf "\\\\377\\\\376\\\\033[31m\\\\0\\\\0red" >&2; exit 1; }', 'red'),
        'no word': ('[ "$out" ] && exit 1', ''),
        'a strange status': ('[ "$out" ] && { echo why >&2; exit 77; }', 'why'),
    }
    with Driver(compile_timeout_s=60) as d:
        c = d.server.client()
        for i, (name, (lie, words)) in enumerate(lies.items()):
            d.install(lie)
            before = c.stats()['store']['records']
            begin = time.monotonic()
            a = c.ask(second(100 + i), text=True)
            assert time.monotonic() - begin < 40, (name, time.monotonic() - begin)
            assert a.kind == ERROR and a.code == 'compile' and not a.retryable, (name, a)
            assert words in a.text and 0 < len(a.text) < 300000, (name, len(a.text), a)
            assert all(x in '\n\t' or x.isprintable() for x in a.text), (name, a)
            b = c.ask(second(100 + i), text=True)
            assert (b.code, b.text) == (a.code, a.text), (name, a, b)
            after = c.stats()['store']['records']
            assert after['kernels'] == before['kernels'] and after['bundles'] == before['bundles'], (name, before, after)
            d.server.no_leftovers()
        d.install('')
        a = eventually(lambda: (lambda x: x if x.kind == RESULT else None)(c.ask(second(100), text=True)), 'an answer')
        assert os.listdir(d.server.state + '/tmp') == [], os.listdir(d.server.state + '/tmp')
        c.close()


def C10_C11_compilers_that_leave_children():
    """Whatever a compiler starts ends with its job: in groups and sessions of its own, deaf to signals, with the pipe open."""
    with Driver(compile_timeout_s=60, jobs=1) as d:
        c = d.server.client()
        mark = d.base + '/child'
        child = f'trap "" TERM HUP INT; sleep 1234 & echo $! > {mark}; wait'
        d.install(f'[ "$out" ] && {{ ( {child} ) & exec {REAL} "$@"; }}')
        a = c.ask(second(300), text=True)
        assert a.kind == RESULT, a
        pid = int(eventually(lambda: os.path.exists(mark) and open(mark).read(), 'the child is named'))
        eventually(lambda: not os.path.exists(f'/proc/{pid}') or open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] in 'ZX',
                   'the child is gone', 5)
        os.unlink(mark)
        d.install(f'[ "$out" ] && {{ {child}; }}')
        i = c.send(second(301), text=True)
        pid = int(eventually(lambda: os.path.exists(mark) and open(mark).read(), 'the child is named'))
        begin = time.monotonic()
        c.close()
        eventually(lambda: not os.path.exists(f'/proc/{pid}') or open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] in 'ZX',
                   'the child is gone', 5)
        assert time.monotonic() - begin < 1.5
        d.server.no_leftovers(5)


if __name__ == '__main__':
    sys.exit(run([C25_a_replaced_toolchain_is_never_used_again, C25_reinstalled_in_the_same_bytes_it_still_hits, C25_C26_whatever_a_compile_depends_on_moves_the_key,
                  C26_a_shared_library_of_the_assembler_counts, C13_compilers_that_are_killed_or_have_no_memory,
                  C27_nothing_else_moves_it, a_removed_toolchain_is_named,
                  A14_compilers_that_lie, C10_C11_compilers_that_leave_children]))
