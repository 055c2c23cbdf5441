#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The nanomsg door: JSON in, bundle out, events; what one hostile byte does to it and to nobody else; who may connect."""
import ctypes, os, shutil, stat, struct, subprocess, sys, tempfile, threading, time
from afwire import *
from ctl import *

CLIENT = os.path.join(ROOT, 'docs', 'gate_client.py')
sys.path.insert(0, os.path.dirname(CLIENT))
import gate_client
from gate_client import Gate, nn

PLAIN = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
SP_REQ = b'\0SP\0\0\x30\0\0'


def text(words):
    return json.dumps({'fake': words})


def door(s):
    """The path of a gate that answers."""
    path = s.base + '/run/gate.ipc'

    def answers():
        try:
            g = Gate(path)
        except OSError:
            return False
        try:
            return g.ask(want='stats')[0]['status'] == 'ok'
        finally:
            g.close()
    eventually(answers, f'the gate answers\n{s.tail()}')
    return path


def gate_pid(s):
    for p in filter(str.isdigit, os.listdir('/proc')):
        try:
            argv = open(f'/proc/{p}/cmdline').read().split('\0')
        except OSError:
            continue
        if os.path.basename(argv[0]) == 'autofused-gate' and s.base + '/run/gate.ipc' in argv:
            return int(p)
    return None


def gate_server(**options):
    return Server(gate='on', **options)


def sixty_lines_of_python():
    assert len(open(CLIENT).readlines()) <= 60
    with gate_server(fake=False) as s:
        path, out = door(s), s.base + '/bundle'
        p = subprocess.run([sys.executable, CLIENT, path, SAMPLES[2], out], capture_output=True, text=True, timeout=300)
        assert p.returncode == 0, p
        header = json.loads(p.stdout)
        assert header['status'] == 'ok' and header['hit'] == 'compiled' and header['kernels'] >= 1, header
        c = s.client()
        a = c.ask(open(SAMPLES[2]).read(), text=True)
        assert a.hit == HIT_STORE and a.key.hex() == header['key'] and a.bundle() == open(out, 'rb').read()
        assert len(header['slot_map']['inputs']) == len(json.load(open(SAMPLES[2]))['inputs'])
        c.close()


def one_request_each_way():
    with gate_server() as s:
        g = Gate(door(s))
        h, bundle = g.ask(text('kernels=a,b'))
        assert h['status'] == 'ok' and h['hit'] == 'compiled' and len(bundle) == h['bundle_bytes'] and bundle[:4] == b'AFB1', h
        assert g.ask(text('kernels=a,b'))[1] == bundle
        h, none = g.ask(text('kernels=a,b'), want='key')
        assert h['hit'] == 'store' and none == b'' and h['bundle_bytes'] == len(bundle)
        assert g.ask(text('kernels=new'), lookup_only=True)[0]['code'] == 'not_found'
        h = g.ask(text('compile=fail'))[0]
        assert (h['status'], h['code'], h['retryable']) == ('error', 'compile', False) and 'told to fail' in h['text'], h
        assert g.ask(text('compile=hang'), deadline_ms=100)[0]['code'] == 'deadline'
        for bad in ({'want': 'all'}, {'surprise': 1, 'want': 'key'}, {'want': 'key'}, {'want': 'stats', 'deadline_ms': -1}):
            assert g.ask(**bad)[0]['code'] == 'invalid', bad
        assert g.ask('[]')[0]['code'] == 'invalid'
        stats = g.ask(want='stats')[0]['stats']
        assert stats['gate']['running'] and stats['hits'] == 2 and stats['deadlines'] == 1, stats
        g.close()


def a_large_bundle_needs_room():
    with gate_server() as s:
        path = door(s)
        small, large = Gate(path, max_bytes=1 << 20), Gate(path, max_bytes=8 << 20)
        h = small.ask(text('size=3000000'))[0]
        assert h['code'] == 'too_large' and 'NN_RCVMAXSIZE' in h['text'], h
        h, bundle = large.ask(text('size=3000000'))
        assert h['hit'] == 'store' and len(bundle) > 3000000
        assert small.ask(text('kernels=a'))[0]['status'] == 'ok'
        small.close()
        large.close()


def pending_then_done():
    with gate_server() as s:
        g = Gate(door(s))
        h = g.ask(text('kernels=p compile_ms=4000'), wait_ms=50)[0]
        assert h['status'] == 'pending' and h['retryable'] and h['elapsed_ms'] >= 50, h
        h = g.ask(text('kernels=p compile_ms=4000'))[0]
        assert h['status'] == 'ok' and h['hit'] in ('joined', 'store'), h
        assert g.ask(want='stats')[0]['stats']['fragment_compiles'] == 1
        g.close()


def replies_overtake():
    with gate_server(jobs=4) as s:
        path, w = door(s), Watcher(s.path)
        slow, answered = Gate(path), []

        def wait():
            try:
                answered.append(slow.ask(text('kernels=slow compile=hang')))
            except OSError:
                pass  # closed below
        t = threading.Thread(target=wait)
        t.start()
        w.wait('job.start', what='slow')
        for i in range(20):
            g = Gate(path)
            assert g.ask(text(f'kernels=k{i % 3}'))[0]['status'] == 'ok'
            g.close()
        assert not answered and len(w.wait('request.submit', 21)) >= 21
        slow.close()
        t.join()
        w.close()


def a_copy_is_not_compiled_twice_and_a_newer_request_replaces():
    with gate_server() as s:
        g, w = Gate(door(s)), Watcher(s.path)
        again = ctypes.c_int(100)
        nn.nn_setsockopt(g.socket, gate_client.NN_REQ, gate_client.NN_REQ_RESEND_IVL, ctypes.byref(again), ctypes.sizeof(again))
        assert g.ask(text('kernels=r compile_ms=1000'))[0]['hit'] == 'compiled'
        assert len(w.wait('request.done')) == 1 and len(w.named('request.submit')) == 1, w.events
        first = text('kernels=old compile=hang').encode()
        assert nn.nn_send(g.socket, first, len(first), 0) == len(first)
        w.wait('job.start', what='old')
        assert g.ask(text('kernels=r compile_ms=1000'))[0]['hit'] == 'store'
        w.wait('request.canceled')
        w.wait('job.end', what='old')
        g.close()
        w.close()


def one_malformed_byte_ends_the_gate_alone():
    """One byte of any peer ends the process that has the socket: the core, its stream clients and what the gate was asked go on."""
    with gate_server(jobs=4) as s:
        path, stream = door(s), s.client()
        assert stream.ask('kernels=a').hit == HIT_COMPILED
        w, pending = Watcher(s.path), {}
        under_way = stream.send('kernels=stream compile_ms=1500')

        def ask():
            g = Gate(path)
            pending['answer'] = g.ask(text('kernels=gate compile_ms=1500'))[0]
            g.close()
        t = threading.Thread(target=ask)
        t.start()
        w.wait('job.start', what='gate')
        core, gate = s.process.pid, gate_pid(s)
        with socket.socket(socket.AF_UNIX) as hostile:
            hostile.connect(path)
            hostile.sendall(SP_REQ + b'\xff' + struct.pack('>Q', 4) + b'evil')
            killed = time.monotonic()
            eventually(lambda: gate_pid(s) != gate, 'the byte ends the gate')
        door(s)
        print(f'# answers again after {(time.monotonic() - killed) * 1000:.0f} ms')
        assert gate_pid(s) not in (None, gate) and s.process.poll() is None and s.process.pid == core
        assert stream.wait(under_way).hit == HIT_COMPILED and stream.ask('kernels=a').hit == HIT_STORE
        t.join(120)
        assert pending['answer']['status'] == 'ok', pending  # nanomsg asked again by itself
        assert s.stats()['gate']['starts'] == 2 and stream.stats()['protocol_errors'] == 0
        stream.close()
        w.close()


def descriptors(pid):
    """What is open now; one that is closed while we look is not."""
    out = []
    for f in os.listdir(f'/proc/{pid}/fd'):
        try:
            out.append(os.readlink(f'/proc/{pid}/fd/{f}'))
        except FileNotFoundError:
            pass
    return out


def it_holds_nothing_of_the_servers():
    with gate_server() as s:
        door(s)
        fds = descriptors(gate_pid(s))
        assert not [f for f in fds if s.state in f or 'memfd' in f], fds
        status = open(f'/proc/{gate_pid(s)}/status').read()
        assert 'NoNewPrivs:\t1' in status
        limits = open(f'/proc/{gate_pid(s)}/limits').read()
        assert 'Max address space         1073741824' in limits or 'Max address space         unlimited' in limits  # sanitizers need more
        assert open(f'/proc/{gate_pid(s)}/environ').read() == 'LC_ALL=C.UTF-8\0'


def it_comes_back_each_time():
    with gate_server() as s:
        path = door(s)
        for i in range(6):
            pid = gate_pid(s)
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: gate_pid(s) not in (None, pid), 'another gate')
            path = door(s)
        g = Gate(path)
        assert g.ask(text('kernels=a'))[0]['status'] == 'ok'
        g.close()
        # The core is killed: the gate does not outlive it, and its dead sockets are in nobody's way.
        s.stop(signal.SIGKILL)
        eventually(lambda: gate_pid(s) is None, 'the gate has ended, too')
        assert os.path.exists(path)
        s.start()
        g = Gate(door(s))
        assert g.ask(text('kernels=a'))[0]['hit'] == 'store'
        g.close()
        assert s.stop() == 0
        assert not os.path.exists(path) and gate_pid(s) is None


def who_may_connect():
    """nanomsg tells nobody's user: the file's mode and list decide, from the same setting as the stream's."""
    def connects(path):
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
        return subprocess.run([*PLAIN, '/usr/bin/python3', '-c', code], capture_output=True).returncode == 0

    if os.geteuid() != 0:
        return
    base = tempfile.mkdtemp(prefix='afgate.')
    try:
        os.chmod(base, 0o755)
        many = ' '.join(map(str, [*range(100000, 100300), 65534]))
        for options, mode, admitted in (({}, 0o600, False), ({'gate_mode': '0666'}, 0o666, True), ({'allow_uid': 65534}, None, True), ({'allow_uid': many}, None, True)):
            s = gate_server(base=base, **options)
            with s:
                path = door(s)
                if mode is None and not lists_work(base):
                    assert 'cannot be admitted' in s.tail(), s.tail()
                    continue
                if mode is not None:
                    assert stat.S_IMODE(os.stat(path).st_mode) == mode
                assert connects(path) == admitted, options
                assert connects(s.base + '/run/events.ipc') == admitted, options
    finally:
        shutil.rmtree(base)


def lists_work(directory):
    """Whether the file system has access lists."""
    p = directory + '/probe'
    open(p, 'w').close()
    none = 0xffffffff
    acl = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *e) for e in ((1, 6, none), (2, 6, 65534), (4, 0, none), (16, 6, none), (32, 0, none)))
    try:
        os.setxattr(p, 'system.posix_acl_access', acl)
        return True
    except OSError:
        return False


def a_reload_changes_who_may_connect():
    with gate_server() as s:
        path = door(s)
        conf = s.base + '/conf'
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        s.stop()
        open(conf, 'w').write('gate_mode = 0600\n')
        s.options.pop('gate')
        s.options['config'] = conf
        s.start()
        door(s)
        open(conf, 'w').write('gate_mode = 0660\n')
        s.process.send_signal(signal.SIGHUP)
        eventually(lambda: os.path.exists(path) and stat.S_IMODE(os.stat(path).st_mode) == 0o660, 'the new mode')
        door(s)
        open(conf, 'w').write('gate = off\n')
        s.process.send_signal(signal.SIGHUP)
        eventually(lambda: gate_pid(s) is None and not os.path.exists(path), 'no gate')
        assert not s.stats()['gate']['running']


def no_place_for_a_long_path():
    with tempfile.TemporaryDirectory(prefix='af.') as base:
        inner = base + '/' + 'd' * (107 - len(base) - len('/run/core.sock') - 1)
        os.mkdir(inner)
        s = gate_server(base=inner)
        assert len(s.path) == 107
        with s:
            assert s.client().ask('kernels=a').hit == HIT_COMPILED
            assert 'there is no gate' in s.tail() and not s.stats()['gate']['running']


def many_clients():
    with gate_server() as s:
        path, bad = door(s), []

        def client(n):
            try:
                g = Gate(path)
                for i in range(5):
                    h, bundle = g.ask(text(f'kernels=m{(n + i) % 7}'))
                    if h['status'] != 'ok' or bundle[:4] != b'AFB1':
                        bad.append(h)
                g.close()
            except Exception as e:
                bad.append(repr(e))
        threads = [threading.Thread(target=client, args=(n,)) for n in range(40)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not bad, bad[:3]
        st = s.stats()
        assert st['fragment_compiles'] == 7 and st['failures'] == 0, st


def events_by_topic():
    with gate_server() as s:
        path = door(s)
        sub = nn.nn_socket(1, gate_client.NN_SUB)
        wait = ctypes.c_int(60000)
        nn.nn_setsockopt(sub, 0, gate_client.NN_RCVTIMEO, ctypes.byref(wait), ctypes.sizeof(wait))
        nn.nn_setsockopt(sub, gate_client.NN_SUB, gate_client.NN_SUB_SUBSCRIBE, b'request.', 8)
        assert nn.nn_connect(sub, b'ipc://' + (s.base + '/run/events.ipc').encode()) >= 0

        def receive():
            buf = ctypes.create_string_buffer(65536)
            n = nn.nn_recv(sub, buf, len(buf), 0)
            assert n > 0, nn.nn_errno()
            topic, _, body = buf.raw[:n].partition(b' ')
            e = json.loads(body)
            assert e['event'] == topic.decode() and topic.startswith(b'request.')
            return e
        g, seen = Gate(path), []

        # The subscription takes a moment to be there: ask until it tells.
        stop = threading.Event()

        def keep_asking():
            mine = Gate(path)
            while not stop.is_set():
                mine.ask(text('kernels=a'))
                time.sleep(0.05)
            mine.close()
        t = threading.Thread(target=keep_asking)
        t.start()
        try:
            while not any(e['event'] == 'request.hit' for e in seen):
                seen.append(receive())
        finally:
            stop.set()
            t.join()
        assert seen[-1]['peer'] == 'gate' and len(seen[-1]['fragment']) == 64
        nn.nn_close(sub)
        g.close()


sys.exit(run([sixty_lines_of_python, one_request_each_way, a_large_bundle_needs_room, pending_then_done, replies_overtake,
              a_copy_is_not_compiled_twice_and_a_newer_request_replaces, one_malformed_byte_ends_the_gate_alone, it_holds_nothing_of_the_servers, it_comes_back_each_time,
              who_may_connect, a_reload_changes_who_may_connect, no_place_for_a_long_path, many_clients, events_by_topic]))
