# SPDX-License-Identifier: Apache-2.0
"""A small client of the server's frames, and private servers for tests. Standard library only."""
import array, json, mmap, os, select, shutil, signal, socket, struct, subprocess, sys, tempfile, threading, time

HELLO, SUBMIT, PROGRESS, PART, RESULT, ERROR, CANCEL, TOUCH, DRAIN, STATS, CLEAR, WATCH, EVENT, HISTORY, WHY = range(1, 16)
SOURCE = 18
VERSIONS, CAPABILITIES, CANON_VERSION, PEER_NAME, ENV_DIGEST = 1, 2, 3, 4, 5
CANON, TEXT_JSON, ORIGINS, KEY, HIT, BUNDLE, BUNDLE_BYTES, SLOT_MAP, CODE, RETRYABLE, TEXT, ELAPSED_MS, WAITERS, COMPILE_US, LOOKUP_ONLY = range(16, 31)
EVENT_TEXT, LOST, FRAGMENT, QUERY = range(40, 44)
PARTS, PART_INDEX, N_PARTS = 56, 57, 58
HIT_COMPILED, HIT_JOINED, HIT_STORE = 0, 1, 2
CODES = ['', 'protocol', 'version', 'refused', 'invalid', 'too_large', 'compile', 'deadline', 'canceled', 'draining', 'busy', 'job_died', 'internal',
         'not_found', 'toolchain', 'storage']
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('AF_BUILD_ROOT', os.path.join(ROOT, 'build'))
AUTOFUSED = os.path.join(BUILD, 'daemon', 'autofused')
FAKEJOB = os.path.join(BUILD, 'tests', 'e2e', 'fakejob')
MAGIC = 0x31574641


def field(tag, value):
    return struct.pack('<HHI', tag, 0, len(value)) + value + b'\0' * (-len(value) % 4)


def frame(kind, request=0, body=b'', deadline=0, priority=0, version=1, n_fds=0, magic=MAGIC):
    return struct.pack('<IBBHQIIBBHI', magic, version, kind, 0, request, len(body), deadline, priority, n_fds, 0, 0) + body


def hello_body(low=1, high=1, caps=1, name=b'test'):
    return field(VERSIONS, struct.pack('<HH', low, high)) + field(CAPABILITIES, struct.pack('<Q', caps)) + field(PEER_NAME, name)


class Closed(Exception):
    pass


class Answer:
    def __init__(self, kind, request, body, fd):
        self.kind, self.request, self.fd, self.fields, self.body, at = kind, request, fd, {}, body, 0
        while at < len(body):
            tag, _, n = struct.unpack_from('<HHI', body, at)
            self.fields[tag] = body[at + 8:at + 8 + n]
            at += 8 + n + (-n % 4)
        f = self.fields
        self.text = f.get(TEXT, b'').decode(errors='replace')
        self.code = CODES[struct.unpack('<I', f[CODE])[0]] if CODE in f else None
        self.retryable = f.get(RETRYABLE, b'\0')[0] == 1
        self.hit = f[HIT][0] if HIT in f else None
        self.key = f.get(KEY)

    def all(self, wanted):
        """Every field with this tag, in order."""
        found, at = [], 0
        while at < len(self.body):
            tag, _, n = struct.unpack_from('<HHI', self.body, at)
            if tag == wanted:
                found.append(self.body[at + 8:at + 8 + n])
            at += 8 + n + (-n % 4)
        return found

    def bundle(self):
        if self.fd is None:
            return self.fields[BUNDLE]
        n = struct.unpack('<Q', self.fields[BUNDLE_BYTES])[0]
        assert os.fstat(self.fd).st_size == n
        with mmap.mmap(self.fd, n, prot=mmap.PROT_READ) as m:
            data = m[:]
        os.close(self.fd)
        self.fd = None
        return data

    def binaries(self):
        """{kernel key: binary}: offsets of proto/bundle.h."""
        data = self.bundle()
        tables = [struct.unpack_from('<IIII', data, 64 + 16 * i) for i in range(16)]
        offset, size, count, _ = tables[1]
        blob = tables[12][0]
        step = size // count if count else 0
        out = {}
        for i in range(count):
            at = offset + i * step
            where, n = struct.unpack_from('<II', data, at + 32 + 16)
            out[data[at:at + 32]] = data[blob + where:blob + where + n]
        return out

    def __repr__(self):
        return f'<answer kind {self.kind} code {self.code} hit {self.hit} {self.text[:200]!r}>'


class Client:
    def __init__(self, path, hello=True, caps=1, timeout=60):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.next, self.buf, self.fds, self.progress = 1, b'', [], []
        if hello:
            try:
                self.sock.sendall(frame(HELLO, body=hello_body(caps=caps)))
            except BrokenPipeError:
                pass  # refused already; why stands in what it wrote
            self.hello = self.read()
            if self.hello.kind != HELLO:
                raise Closed(f'hello: {self.hello.code} {self.hello.text}')

    def _more(self):
        data, anc, _, _ = self.sock.recvmsg(1 << 18, socket.CMSG_SPACE(16 * 4))
        for level, kind, raw in anc:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                a = array.array('i')
                a.frombytes(raw[:len(raw) - len(raw) % a.itemsize])
                self.fds += list(a)
        if not data:
            raise Closed('closed')
        self.buf += data

    def read(self):
        while len(self.buf) < 32:
            self._more()
        _, _, kind, _, request, n, _, _, n_fds, _, _ = struct.unpack('<IBBHQIIBBHI', self.buf[:32])
        while len(self.buf) < 32 + n:
            self._more()
        body, self.buf = self.buf[32:32 + n], self.buf[32 + n:]
        return Answer(kind, request, body, self.fds.pop(0) if n_fds else None)

    def send(self, what, text=False, deadline=0, priority=0, lookup=False, parts=False):
        request, self.next = self.next, self.next + 1
        body = field(TEXT_JSON if text else CANON, what if isinstance(what, bytes) else what.encode())
        if lookup:
            body += field(LOOKUP_ONLY, b'\1')
        if parts:
            body += field(PARTS, b'\1')
        self.sock.sendall(frame(SUBMIT, request, body, deadline, priority))
        return request

    def wait(self, request=None):
        while True:
            a = self.read()
            if a.kind == PROGRESS:
                self.progress.append(a)
            elif a.kind not in (DRAIN, EVENT) and (request is None or a.request == request):
                return a

    def ask(self, what, **kw):
        return self.wait(self.send(what, **kw))

    def cancel(self, request):
        self.sock.sendall(frame(CANCEL, request))

    def stats(self):
        request, self.next = self.next, self.next + 1
        self.sock.sendall(frame(STATS, request))
        return json.loads(self.wait(request).text)

    def clear(self):
        request, self.next = self.next, self.next + 1
        self.sock.sendall(frame(CLEAR, request))
        return self.wait(request)

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        self.sock.close()


class Watcher:
    """Events of a server, gathered by a thread's own connection. `events` grows while it is open."""

    def __init__(self, path):
        self.client, self.events, self.lost = Client(path), [], 0
        self.client.sock.sendall(frame(WATCH, 1))
        first = self.client.read()
        assert first.kind == WATCH and first.request == 1, first
        self.start = json.loads(first.text)
        self.thread = threading.Thread(target=self._gather, daemon=True)
        self.thread.start()

    def _gather(self):
        try:
            while True:
                a = self.client.read()
                self.lost += struct.unpack('<Q', a.fields[LOST])[0] if LOST in a.fields else 0
                self.events += [json.loads(e) for e in a.all(EVENT_TEXT)]
        except (Closed, OSError, ValueError):
            pass

    def named(self, name, **members):
        return [e for e in list(self.events) if e['event'] == name and all(e.get(k) == v for k, v in members.items())]

    def wait(self, name, n=1, timeout=60, **members):
        eventually(lambda: len(self.named(name, **members)) >= n, f'{n} x {name} {members}', timeout)
        return self.named(name, **members)

    def close(self):
        self.client.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.client.close()


def eventually(check, what, timeout=30):
    """Polls until check() is true: for things that no event tells."""
    end = time.monotonic() + timeout
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f'not within {timeout} s: {what}')
        select.select([], [], [], 0.01)


def descendants_of_session(mark):
    """Processes whose environment has this private TMPDIR: jobs and all that they started and kept it."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if mark.encode() in open(f'/proc/{pid}/environ', 'rb').read() or mark.encode() in open(f'/proc/{pid}/cmdline', 'rb').read():
                if open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] not in 'ZX':
                    found.append(int(pid))
        except OSError:
            pass
    return found


class Server:
    """A private server with a socket and state of its own. fake: jobs are fakejob's."""

    def __init__(self, fake=True, base=None, **options):
        self.own = base is None
        self.base = base or tempfile.mkdtemp(prefix='afe2e.')
        self.state = os.path.join(self.base, 'state')
        self.path = os.path.join(self.base, 'run', 'core.sock')
        self.rules = os.path.join(self.base, 'rules')
        os.makedirs(os.path.join(self.base, 'run'), exist_ok=True)
        if fake:
            os.makedirs(self.rules, exist_ok=True)
            options = {'job_path': FAKEJOB, 'rules_dir': self.rules, **options}
            if not os.path.exists(self.rules + '/env'):
                self.set_environment('one')
        self.options = {'socket': self.path, 'state_dir': self.state, 'store_map_mib': 16, 'host_slots': '', 'log_level': 'debug', 'gate': 'off', **options}
        self.process = None
        self.log = os.path.join(self.base, 'log')

    def set_environment(self, text):
        with open(self.rules + '/env.new', 'w') as f:
            f.write(text)
        os.rename(self.rules + '/env.new', self.rules + '/env')

    def argv(self):
        argv = [AUTOFUSED]
        for k, v in self.options.items():
            argv += ['--' + k.replace('_', '-'), str(v)]
        return argv

    def start(self, wait=True, env=None, prefix=(), **kw):
        e = {'PATH': os.environ['PATH'], 'HOME': self.base, **(env or {})}
        with open(self.log, 'a') as log:
            self.process = subprocess.Popen([*prefix, *self.argv()], env=e, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **kw)
        if wait:
            self.ready()
        return self

    def ready(self):
        def up():
            assert self.process.poll() is None, f'the server ended: {self.tail()}'
            try:
                self.client().close()
                return True
            except (OSError, Closed):
                return False
        eventually(up, 'the server is up')

    def client(self, **kw):
        return Client(self.path, **kw)

    def stats(self):
        c = self.client()
        try:
            return c.stats()
        finally:
            c.close()

    def tail(self, n=2000):
        try:
            return open(self.log, errors='replace').read()[-n:]
        except OSError:
            return ''

    def stop(self, sig=signal.SIGTERM, timeout=60):
        if self.process and self.process.poll() is None:
            self.process.send_signal(sig)
        return self.process.wait(timeout) if self.process else None

    def leftovers(self):
        return [p for p in descendants_of_session(self.base) if not self.process or p != self.process.pid]

    def no_leftovers(self, timeout=20):
        eventually(lambda: not self.leftovers(), f'no process is left: {self.leftovers()}', timeout)

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        try:
            self.stop(signal.SIGKILL)
        finally:
            if exc[0] is not None:
                sys.stderr.write(self.tail())
            if self.own:
                shutil.rmtree(self.base, ignore_errors=True)


def run(tests):
    """Runs functions; prints `ok NAME` or `not ok NAME why`. Returns the exit status."""
    import traceback
    only, bad = sys.argv[1:], 0
    for t in tests:
        if only and not any(o in t.__name__ for o in only):
            continue
        begin = time.monotonic()
        try:
            t()
            print(f'ok {t.__name__} ({time.monotonic() - begin:.1f} s)', flush=True)
        except Exception as e:
            bad += 1
            traceback.print_exc()
            print(f'not ok {t.__name__} {type(e).__name__}: {e}', flush=True)
    return 1 if bad else 0
