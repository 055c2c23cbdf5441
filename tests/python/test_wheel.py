#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wheels in fresh environments: one that carries libraries and server needs nothing of this tree; a plain one takes what is named."""
import os, shutil, signal, subprocess, sys, tempfile
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from other_python import need

need('pip', 'setuptools')
from afpy import BUILD, ROOT, eventually, run

BASE = tempfile.mkdtemp(prefix='afwheel ')  # with a blank
DEBIAN = '/usr/bin/python3'  # its cffi is the environments': nothing is fetched
PROGRAM = '''
import array, sys
import autofuse
from autofuse._ffi import library_path
f = autofuse.Fragment("wheel")
f.input("x", "float32", [640])
f.node("neg", ["x"], [("t", "float32", [640])])
f.node("exp", ["t"], [("z", "float32", [640])])
f.output("z")
b = autofuse.default_context().compile(f)
x, z = array.array("f", range(640)), array.array("f", [0]) * 640
b.run([x], [z])
assert z[0] == 1 and 0.36787 < z[1] < 0.36789, z[:2]
print(autofuse.__file__, library_path(), b.info.n_kernel_steps, sep="\\n")
'''


def pip(*args, python=sys.executable):
    command = [sys.executable, '-m', 'pip', '--python', python, '--quiet', '--disable-pip-version-check', *args]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done


def fresh(name, wheel):
    """Python of a new environment with this wheel."""
    where = os.path.join(BASE, name)
    subprocess.run([DEBIAN, '-m', 'venv', '--without-pip', '--system-site-packages', where], check=True)
    python = os.path.join(where, 'bin', 'python')
    pip('install', '--no-deps', '--no-index', wheel, python=python)
    return python


def wheel_of(directory):
    names = os.listdir(directory)
    assert len(names) == 1 and names[0].endswith('.whl'), names
    return os.path.join(directory, names[0])


def program(python, **env):
    env = {'PATH': '/usr/bin:/bin', 'HOME': BASE, 'AUTOFUSE_SOCKET': BASE + '/run/core.sock', 'AUTOFUSE_STATE_DIR': BASE + '/state',
           'AUTOFUSE_GATE': 'off', **env}
    done = subprocess.run([python, '-c', PROGRAM], cwd=BASE, capture_output=True, text=True, timeout=500, env=env)
    assert done.returncode == 0 and done.stderr == '', done
    return done.stdout.split('\n')


def servers():
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if BASE + '/run/core.sock' in open(f'/proc/{pid}/cmdline').read().split('\0'):
                found[int(pid)] = os.readlink(f'/proc/{pid}/exe')
        except OSError:
            pass
    return found


def a_whole_wheel_needs_nothing_of_this_tree():
    subprocess.run([sys.executable, ROOT + '/python/build_wheel.py', '--build', BUILD, '--out', BASE + '/whole'], check=True)
    python = fresh('with everything', wheel_of(BASE + '/whole'))
    for _ in range(2):
        package, library, kernels, _ = program(python)
        assert package.startswith(BASE) and library.startswith(BASE) and kernels == '1'
        assert library.endswith('/_native/lib/libautofuse.so.0'), library
    assert len(servers()) == 1 and all(exe.startswith(BASE + '/with everything/') for exe in servers().values()), servers()


def a_plain_wheel_takes_what_is_named():
    source = os.path.join(BASE, 'source')
    shutil.copytree(ROOT + '/python', source, ignore=shutil.ignore_patterns('__pycache__'))
    command = [sys.executable, '-m', 'pip', 'wheel', '--quiet', '--disable-pip-version-check', '--no-deps', '--no-build-isolation', source]
    done = subprocess.run([*command, '--wheel-dir', BASE + '/plain'], capture_output=True, text=True)
    assert done.returncode == 0, done
    wheel = wheel_of(BASE + '/plain')
    assert wheel.endswith('-none-any.whl'), wheel
    library = BUILD + '/client/libautofuse.so.0'
    package, loaded, kernels, _ = program(fresh('plain', wheel), AUTOFUSE_LIBRARY=library)
    assert package.startswith(BASE + '/plain/') and loaded == library and kernels == '1'


try:
    tests = [a_whole_wheel_needs_nothing_of_this_tree]
    if os.environ.get('AF_LONG') == '1':
        tests.append(a_plain_wheel_takes_what_is_named)
    status = run(tests)
finally:
    for pid in servers():
        os.kill(pid, signal.SIGTERM)
    eventually(lambda: not servers(), 'the server has ended')
    shutil.rmtree(BASE)
sys.exit(status)
