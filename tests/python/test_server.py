#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers on demand from Python, and what happens around a wait: forks, interrupts, a server that goes, progress."""
import os, shutil, signal, subprocess, sys, tempfile
from afpy import BUILD, HERE, add_relu, autofuse, eventually, raises, run, server
from ctl import CTL, SAMPLES, ctl

STATE = tempfile.mkdtemp(prefix='afpy.state.')  # of one server after the other: what one compiled the next has
PRELUDE = f'''
import os, sys
sys.path.insert(0, {HERE!r})
import afpy, autofuse
from afpy import *
os.environ.pop("AUTOFUSE_AUTOSTART")
if "FORBID" in os.environ:
    os.environ["AUTOFUSE_AUTOSTART"] = "0"
'''


class Place:
    """A temporary place for a server that is started on demand; ends what was started there."""

    def __init__(self, **env):
        self.base = tempfile.mkdtemp(prefix='afpy.')
        self.path = self.base + '/run/core.sock'
        self.env = {'PATH': os.environ['PATH'], 'AF_BUILD_ROOT': BUILD, 'AUTOFUSE_SOCKET': self.path, 'AUTOFUSE_STATE_DIR': STATE,
                    'HOME': self.base, 'AUTOFUSE_GATE': 'off', 'PYTHONDONTWRITEBYTECODE': '1', **env}

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for pid in self.servers():
            os.kill(pid, signal.SIGTERM)
        eventually(lambda: not self.servers(), 'the server has ended')
        shutil.rmtree(self.base)

    def servers(self):
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                argv = open(f'/proc/{pid}/cmdline').read().split('\0')
            except OSError:
                continue
            if os.path.basename(argv[0]) == 'autofused' and self.path in argv:
                found.append(int(pid))
        return found

    def python(self, code, **kw):
        return subprocess.Popen([sys.executable, '-c', PRELUDE + code], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **kw)

    def ok(self, code):
        p = self.python(code)
        out, err = p.communicate(timeout=500)
        assert p.returncode == 0, (p.returncode, out, err)
        return out, err


def programs_at_once_start_one():
    with Place() as p:
        programs = [p.python('b = autofuse.default_context().compile(add_relu()); print(b.info.n_kernels)') for _ in range(6)]
        tools = [subprocess.Popen([CTL, 'stats'], env=p.env, stdout=subprocess.DEVNULL) for _ in range(2)]  # start servers, too
        done = [q.communicate(timeout=500) for q in programs]
        assert [t.wait(500) for t in tools] == [0, 0]
        assert all(q.returncode == 0 for q in programs) and {out for out, _ in done} == {'1\n'} and {err for _, err in done} == {''}, done
        assert len(p.servers()) == 1
        out, _ = p.ok('print(autofuse.default_context().server_stats()["fragment_compiles"])')
        assert out == '1\n', out
        assert os.stat(p.base + '/run/autofused.log').st_mode & 0o777 == 0o600


def the_server_is_nobodys_child_and_keeps_nothing():
    with Place() as p:
        r, w = os.pipe()
        q = p.python(f'''
os.set_inheritable({w}, True)
autofuse.default_context().compile(add_relu())
try:
    os.wait()
except ChildProcessError:
    print("no child", os.getsid(0), flush=True)
''', pass_fds=[w])
        os.close(w)
        out, err = q.communicate(timeout=500)
        assert q.returncode == 0 and out.startswith('no child') and err == '', (out, err)
        assert os.read(r, 1) == b'', 'the pipe ends although the server lives'
        os.close(r)
        assert str(os.getsid(p.servers()[0])) != out.split()[-1]


def forbidden_and_impossible_are_one_warning():
    code = '''
for i in range(3):
    try:
        autofuse.default_context().compile(add_relu(100 + i))
        print("compiled")
    except autofuse.Unavailable as e:
        print("unavailable")
'''
    for env, said in (({'FORBID': '1'}, 'no server is running'), ({'AUTOFUSE_JOBS': 'many'}, 'ended at once')):
        with Place(**env) as p:
            out, err = p.ok(code)
            assert out == 'unavailable\n' * 3 and said in err and err.count('\n') == 1, (out, err)
            assert err.startswith('autofused is not used: '), err
            assert not p.servers()
    with Place() as p:
        os.makedirs(p.base + '/run')
        with open(p.path, 'w'):
            pass
        out, err = p.ok(code.replace('default_context()', 'Context()').replace('for i in range(3):', 'for i in [0]:'))
        assert out == 'unavailable\n' and 'a file, not a socket' in err and err.count('\n') == 1, (out, err)
        out, err = p.ok(code)
        assert out == 'unavailable\n' * 3 and 'not a socket' in err and err.count('\n') == 1, (out, err)


def a_server_that_went_is_started_again():
    with Place() as p:
        q = p.python('''
import signal
c = autofuse.default_context()
c.compile(add_relu())
print("up", flush=True)
pid = int(sys.stdin.readline())
os.kill(pid, signal.SIGKILL)
state = lambda: open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
eventually(lambda: not os.path.exists(f"/proc/{pid}") or state() == "Z", "it is gone")
failed = []
def one(i):
    try:
        c.compile(add_relu(4000 + i % 2))
    except BaseException as e:
        failed.append(e)
import threading
threads = [threading.Thread(target=one, args=[i]) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
assert not failed, failed
print(c.compile(add_relu(4001)).info.n_kernels)
''')
        assert q.stdout.readline() == 'up\n'
        out, err = q.communicate(f'{p.servers()[0]}\n', timeout=500)
        assert out == '1\n' and len(p.servers()) == 1, (out, err)


def a_forked_child_goes_on():
    """The context, a bundle, a pool of threads and the request that the parent waits for, in children of a program with threads."""
    with Place() as p:
        out, err = p.ok('''
import threading
c = autofuse.default_context()
n = 1 << 18
b = c.compile(add_relu(n))
x, y, z = floats(n, 1), floats(n, 2), floats(n)
r = b.prepare(threads=3)
where = [address(x), address(y)], [address(z)]
r(*where)
request = c.submit(add_relu(555))
stop, inside = threading.Event(), threading.Event()
node = c.compile(around_opaque((16, 8))).prepare(host_call=lambda *a: (inside.set(), stop.wait()))
w = floats(128)
taken = threading.Thread(target=lambda: node([address(x)], [address(w)]))
taken.start()
inside.wait()
busy = threading.Thread(target=lambda: [c.memo_stats() for _ in iter(stop.is_set, True)])
busy.start()
pids = []
for i in range(3):
    pid = os.fork()
    if pid == 0:
        try:
            z[:] = floats(n)
            for _ in range(5):
                r(*where)
            good = not node._busy.locked() and z[0] == 3 and z[n - 1] == 3 and request.wait().info.n_kernels == 1
            good = good and c.compile(add_relu(600 + i)).info.n_kernels == 1
            os._exit(0 if good else 1)
        except BaseException as e:
            print("child:", repr(e), file=sys.stderr, flush=True)
            os._exit(2)
    pids.append(pid)
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
stop.set()
busy.join()
taken.join()
r(*where)
print(request.wait().info.n_kernels, z[5])
''')
        assert out == '[0, 0, 0]\n1 3.0\n', (out, err)


def an_interrupt_ends_a_wait():
    with server(state_dir=STATE) as s:
        p = subprocess.Popen([sys.executable, '-c', PRELUDE + f'''
c = autofuse.Context(socket={s.path!r})
c.compile(add_relu())
print("ready", flush=True)
sys.stdin.readline()
try:
    r = c.submit(add_relu(99))
    print("waiting", flush=True)
    r.wait()
except KeyboardInterrupt:
    print("interrupted", flush=True)
'''], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert p.stdout.readline() == 'ready\n'
        s.process.send_signal(signal.SIGSTOP)
        try:
            p.stdin.write('\n')
            p.stdin.flush()
            assert p.stdout.readline() == 'waiting\n'
            p.send_signal(signal.SIGINT)
            assert p.stdout.readline() == 'interrupted\n' and p.wait(100) == 0
        finally:
            s.process.send_signal(signal.SIGCONT)
            p.kill()
            p.communicate()


def what_progress_raises_arrives():
    """Jobs that start late: the server tells so every second."""
    with tempfile.TemporaryDirectory(prefix='afpy.') as d:
        job = d + '/job'
        with open(job, 'w') as f:
            f.write(f'#!/bin/sh\n/bin/sleep 2\nexec {BUILD}/daemon/autofused-job "$@"\n')
        os.chmod(job, 0o755)
        with server(job_path=job) as s, autofuse.Context(socket=s.path) as c:
            raised, told = [], []

            def tell(p):
                raised.append(p)
                raise LookupError(p.text)
            e = raises(LookupError, c.compile, add_relu(), progress=tell)
            assert len(raised) == 1 and e.args == (raised[0].text,) and raised[0].n_waiters == 1
            eventually(lambda: s.stats()['in_flight']['requests'] == 0, 'the request is canceled')
            assert c.compile(add_relu(), progress=told.append).info.n_kernels == 1
            assert told and len(set(told)) == len(told) and told == sorted(told, key=lambda p: p.elapsed_ms), told


def packs_are_asked_before_a_server_is_started():
    with Place() as p:
        with server() as s:
            pack = ctl('pack', p.base + '/a.pack', SAMPLES[0], '--socket', s.path)
            assert pack.code == 0, pack
        out, err = p.ok(f'''
c = autofuse.Context(packs=[{p.base + "/a.pack"!r}], autostart=True)
print(c.compile(open({SAMPLES[0]!r}).read()).info.hit, os.path.exists({p.path!r}))
print(c.compile(add_relu()).info.n_kernels, os.path.exists({p.path!r}))
''')
        assert out == 'pack False\n1 True\n' and err == '' and len(p.servers()) == 1, (out, err)


TESTS = [programs_at_once_start_one, the_server_is_nobodys_child_and_keeps_nothing, forbidden_and_impossible_are_one_warning,
         a_server_that_went_is_started_again, a_forked_child_goes_on, an_interrupt_ends_a_wait,
         packs_are_asked_before_a_server_is_started, what_progress_raises_arrives]
if __name__ == '__main__':
    try:
        status = run(TESTS)
    finally:
        shutil.rmtree(STATE)
    sys.exit(status)
