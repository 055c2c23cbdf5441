#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hits without a round trip: memo and hot area follow what is in force, outlive nothing, and no client can touch the area."""
import aflib
from aflib import COMPILED, HOT, MEMO, STORE, Context, Failed
from test_toolchains import *

SECOND = 1.0


def hot(ctx, text=FIRST):
    """A hit of the hot area: it was asked for twice, the server is alive and the machine not too busy."""
    return eventually(lambda: (lambda i: i if i.hit == HOT else None)(ctx.compile(text)), 'a hit of the hot area')


def key(info):
    return info.fragment, info.environment


def follows(ctx, first, replaced):
    """The answer of another environment, or None. No call that begins a second after the change may get the old one."""
    begin = time.monotonic()
    now = ctx.compile(FIRST)
    assert key(now) != key(first) or begin <= replaced + SECOND, f'the old one {begin - replaced:.2f} s later, hit {now.hit}'
    return now if key(now) != key(first) else None


def C25_C26_memo_and_hot_follow_a_replaced_toolchain():
    """Same path, size and mtime; other bytes. The first bytes again: hits. Identical bytes: hits. Without an area the memo follows all the same."""
    with Driver() as d:
        d.install('set -- "$@" -DAF_TEST_COMPILER=1')
        with Context(d.server.path) as memo, Context(d.server.path, memo=False) as bare:
            first = memo.compile(FIRST)
            assert first.hit == COMPILED, first.hit
            settle(d)
            assert key(hot(bare)) == key(first)
            assert memo.compile(FIRST).hit == MEMO
            d.install('set -- "$@" -DAF_TEST_COMPILER=2', keep_times=True)
            replaced = time.monotonic()
            both = [eventually(lambda: follows(c, first, replaced), 'it follows', timeout=120) for c in (memo, bare)]
            assert key(both[0]) == key(both[1])
            assert key(hot(bare)) == key(both[0])
            compiles = d.server.stats()['kernel_compiles']
            d.install('set -- "$@" -DAF_TEST_COMPILER=1')
            for c in (memo, bare):
                eventually(lambda: key(c.compile(FIRST)) == key(first), 'the first answer again', timeout=120)
            d.install('set -- "$@" -DAF_TEST_COMPILER=1')
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                for c in (memo, bare):
                    now = c.compile(FIRST)
                    assert key(now) == key(first) and now.hit in (MEMO, HOT, STORE), now.hit
                select.select([], [], [], 0.05)
            assert d.server.stats()['kernel_compiles'] == compiles
        assert d.server.stop() == 0
        d.server.options['hot_mib'] = 0
        d.server.start()
        with Context(d.server.path) as memo:
            assert d.server.stats()['hot']['bytes'] == 0 and key(memo.compile(FIRST)) == key(first)
            settle(d)
            d.install('set -- "$@" -DAF_TEST_COMPILER=2', keep_times=True)
            replaced = time.monotonic()
            assert key(eventually(lambda: follows(memo, first, replaced), 'it follows', timeout=120)) == key(both[0])
            assert d.server.stats()['kernel_compiles'] == 0


class Warm(Server):
    """One place and state for many tests: FIRST is compiled once."""
    place = None

    def __init__(self, **options):
        Warm.place = Warm.place or tempfile.mkdtemp(prefix='afe2e.')
        super().__init__(fake=False, base=Warm.place, **options)


def C27_near_equal_targets_differ_and_places_do_not_matter():
    """The default by name, by silence and in part is one environment; another SoC or policy is another."""
    def text(**target):
        f = json.loads(SMALL)
        f['target'] = target
        return json.dumps(f).encode()
    with Warm() as s, Context(s.path, memo=False) as c:
        silent = c.compile(FIRST)
        same = [{'soc': 'Ascend910B2'}, {'soc': 'Ascend910B2', 'toolchain': 'host'}, {'toolchain': 'host'}]
        for t in same:
            assert c.compile(text(**t)).environment == silent.environment
            assert hot(c, text(**t)).environment == silent.environment
        near = [c.compile(text(soc='Ascend910B1')), c.compile(text(twin='checked'))]
        assert len({n.environment for n in near} | {silent.environment}) == 3
        for t in ({'soc': 'Ascend910B1'}, {'twin': 'checked'}):
            i = hot(c, text(**t))
            assert i.environment in {n.environment for n in near}
        a, b = os.getcwd(), dict(os.environ)
        try:
            os.chdir('/')
            os.environ.update(HOME='/nowhere', TZ='Asia/Tokyo', LC_ALL='C')
            assert key(hot(c)) == key(silent)
        finally:
            os.chdir(a)
            os.environ.clear()
            os.environ.update(b)


def a_server_that_is_gone():
    """kill -9: no call that begins a second later is a hot hit; the memo goes on. Started again: hot hits again."""
    with Warm() as s, Context(s.path) as memo, Context(s.path, memo=False, connect_timeout_ms=1) as bare:
        first = memo.compile(FIRST)
        hot(bare)
        s.stop(signal.SIGKILL)
        killed = time.monotonic()

        def gone():
            begin = time.monotonic()
            try:
                i = bare.compile(FIRST)
                assert i.hit == HOT and begin <= killed + SECOND, (i.hit, begin - killed)
                return False
            except Failed as e:
                assert e.status == aflib.UNAVAILABLE, e
                return True
        eventually(gone, 'the area is not believed any more')
        for _ in range(3):
            assert key(memo.compile(FIRST)) == key(first)
        s.start()
        with Context(s.path, memo=False) as c:
            hot(c)
        assert key(memo.compile(FIRST)) == key(first)
        assert s.stop() == 0
        with Context(s.path, memo=False, connect_timeout_ms=1) as c:
            try:
                raise AssertionError(c.compile(FIRST).hit)
            except Failed as e:
                assert e.status == aflib.UNAVAILABLE, e


def a_shut_area_is_not_believed_at_once():
    """SIGTERM: when the server has gone, its area has."""
    with Warm() as s, Context(s.path, memo=False, connect_timeout_ms=1) as c:
        c.compile(FIRST)
        hot(c)
        assert s.stop() == 0
        try:
            raise AssertionError(f'hit {c.compile(FIRST).hit}')
        except Failed as e:
            assert e.status == aflib.UNAVAILABLE, e


def a_server_that_hangs_holds_no_job_up():
    with Warm() as s, Context(s.path) as memo:
        first = memo.compile(FIRST)
        s.process.send_signal(signal.SIGSTOP)
        try:
            end = time.monotonic() + 3
            while time.monotonic() < end:
                assert key(memo.compile(FIRST)) == key(first)
                select.select([], [], [], 0.01)
        finally:
            s.process.send_signal(signal.SIGCONT)
        assert key(memo.compile(FIRST)) == key(first)


def a_new_process_need_not_wait_for_the_server():
    """The area is found beside the socket: a hit while the server does not run. A link that names another area leads to nothing."""
    with Warm() as s:
        with Context(s.path, memo=False) as c:
            c.compile(FIRST)
            first = hot(c)

        def stopped():
            s.process.send_signal(signal.SIGSTOP)
            try:
                with Context(s.path, memo=False, connect_timeout_ms=1) as c:
                    return c.compile(FIRST)
            except Failed as e:
                assert e.status == aflib.UNAVAILABLE, e
            finally:
                s.process.send_signal(signal.SIGCONT)
        i = eventually(stopped, 'a hit without the server')  # stopped within a second of its last beat
        assert i.hit == HOT and key(i) == key(first)
        link = s.path + '.hot'
        text = os.readlink(link)
        os.unlink(link)
        os.symlink(text[:-1] + ('0' if text[-1] != '0' else '1'), link)
        assert stopped() is None
        with Context(s.path, memo=False) as c:
            assert key(hot(c)) == key(first)
        assert s.stop() == 0
        assert not os.path.lexists(link)


def what_is_used_here_stays_there():
    """A hot hit is told to the server when a context that is connected closes, at the latest, and by some that never were; a forked child goes on with the area."""
    with Warm() as s:
        with Context(s.path) as c:
            c.compile(FIRST)
            c.compile(FIRST, bypass=True)
        with Context(s.path) as c:
            hot(Context(s.path, memo=False))
            i = c.compile(FIRST)
            pid = os.fork()
            if pid == 0:
                try:
                    os._exit(0 if key(c.compile(FIRST)) == key(i) else 1)
                finally:
                    os._exit(2)
            assert os.waitpid(pid, 0)[1] == 0

        def told():
            with Context(s.path, memo=False) as c:
                c.compile(FIRST)
            return s.stats()['hot']['touches'] > 0
        eventually(told, 'a touch arrives')
        c = s.client()
        c.clear()
        assert c.stats()['hot']['records'] == 0
        c.close()


def C12_a_program_that_forks_with_its_context():
    """Two children and their parent ask through one inherited context at once, for fragments of their own: no answer is another's."""
    texts = [second(i) for i in range(3)]
    with Warm() as s, Context(s.path, memo=False) as c:
        keys = [key(c.compile(t)) for t in texts]
        assert len({k for k, _ in keys}) == len(texts)

        def ask(i):
            for n in range(200):
                if key(c.compile(texts[i])) != keys[i]:
                    return 1
            return 0
        pids = []
        for i in range(2):
            pid = os.fork()
            if pid == 0:
                code = 2
                try:
                    code = ask(i)
                finally:
                    os._exit(code)
            pids.append(pid)
        assert ask(2) == 0
        assert [os.waitpid(p, 0)[1] for p in pids] == [0] * 2
        assert key(c.compile(texts[0])) == keys[0]


HOSTILE = r'''
import ctypes, fcntl, mmap, os, sys
sys.path.insert(0, sys.argv[2])
from afwire import *
c = Client(sys.argv[1], caps=3)
fd, n = c.hello.fd, struct.unpack('<Q', c.hello.fields[6])[0]
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
NO = ctypes.c_void_p(-1).value
files = [fd]
for mode in (os.O_RDWR, os.O_RDWR | os.O_TRUNC, os.O_WRONLY):
    try:
        files.append(os.open(f'/proc/self/fd/{fd}', mode))
    except OSError:
        pass
def refused(call):
    try:
        call()
    except OSError:
        return
    raise SystemExit('not refused')
for f in files:
    assert libc.mmap(None, n, 3, 1, f, 0) == NO
    refused(lambda: os.pwrite(f, b'x' * 64, 4096))
    refused(lambda: os.ftruncate(f, 0))
    refused(lambda: os.ftruncate(f, 2 * n))
    assert libc.fallocate(f, 3, ctypes.c_long(0), ctypes.c_long(n)) != 0
    refused(lambda: fcntl.fcntl(f, 1033, 8))
p = libc.mmap(None, n, 1, 1, fd, 0)
assert p != NO and libc.mprotect(p, n, 3) != 0 and libc.madvise(p, n, 9) != 0
for body in (b'', field(KEY, b'x' * 64) * 256, field(KEY, b'x' * 63), field(KEY, b''), field(KEY, os.urandom(64)) * 10000):
    c.sock.sendall(frame(TOUCH, body=body))
assert c.stats()['hot']['bytes'] == n
print('done', len(files))
'''


def C35_no_client_can_write_the_area():
    """As an ordinary user who is admitted: every way to write it, and touches of all kinds. Others are served, and from the area."""
    with Warm(allow_uid=65534) as s:
        os.chmod(s.base, 0o755)
        os.chmod(os.path.join(s.base, 'run'), 0o755)
        with Context(s.path, memo=False) as c:
            first = c.compile(FIRST)
            hot(c)
            prefix = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] if os.geteuid() == 0 else []
            p = subprocess.run([*prefix, sys.executable, '-B', '-c', HOSTILE, s.path, os.path.dirname(os.path.abspath(__file__))],
                               capture_output=True, text=True, timeout=300)
            assert p.returncode == 0 and p.stdout.startswith('done'), (p.stdout, p.stderr)
            assert s.process.poll() is None
            assert key(hot(c)) == key(first)


if __name__ == '__main__':
    try:
        code = run([C25_C26_memo_and_hot_follow_a_replaced_toolchain, C27_near_equal_targets_differ_and_places_do_not_matter, a_server_that_is_gone,
                    a_shut_area_is_not_believed_at_once, a_server_that_hangs_holds_no_job_up, a_new_process_need_not_wait_for_the_server, what_is_used_here_stays_there,
                    C12_a_program_that_forks_with_its_context,
                    C35_no_client_can_write_the_area])
    finally:
        if Warm.place:
            shutil.rmtree(Warm.place, ignore_errors=True)
    sys.exit(code)
