#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peers that do not behave: nothing that one of them sends stops the server or another client."""
import os, random, socket, struct, sys, threading, time
from afwire import *


def raw(s, data=b'', half_close=False):
    c = Client(s.path, hello=False)
    if data:
        try:
            c.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
    if half_close:
        c.sock.shutdown(socket.SHUT_WR)
    return c


def fatal(s, data, code):
    c = raw(s, data)
    a = c.read()
    assert a.kind == ERROR and a.code == code and a.request == 0, a
    assert a.text and '\n' not in a.text
    try:
        c.read()
        raise AssertionError('the connection stays open')
    except (Closed, ConnectionResetError):
        pass
    c.close()
    return a


def alive(s):
    c = s.client()
    a = c.ask('kernels=alive')
    assert a.kind == RESULT, a
    c.close()


def malformed_headers_get_one_clear_line():
    with Server() as s:
        fatal(s, b'GET / HTTP/1.1\r\nHost: localhost.example.org\r\n\r\n', 'protocol')
        assert 'version' in fatal(s, frame(HELLO, body=hello_body(), version=2), 'version').text
        fatal(s, frame(HELLO, body=hello_body(2, 9)), 'version')
        fatal(s, frame(HELLO), 'protocol')
        fatal(s, frame(STATS), 'protocol')
        fatal(s, frame(HELLO, body=hello_body(), n_fds=1), 'protocol')
        fatal(s, struct.pack('<IBBHQIIBBHI', MAGIC, 1, HELLO, 0, 0, 0xffffffff, 0, 0, 0, 0, 0), 'too_large')
        fatal(s, struct.pack('<IBBHQIIBBHI', MAGIC, 1, HELLO, 0, 0, 1 << 20, 0, 0, 0, 0, 0), 'protocol')
        fatal(s, frame(HELLO, body=b'\1\0\0\0\xff\xff\xff\xff'), 'protocol')
        fatal(s, frame(HELLO, body=hello_body()[:-1]), 'protocol')
        alive(s)


def malformed_frames_after_hello():
    with Server() as s:
        for data, code in ((frame(HELLO, body=hello_body()), 'protocol'), (frame(RESULT, 1), 'protocol'), (frame(99, 1), 'protocol'),
                           (frame(SUBMIT, 1, field(CANON, b'x')[:-2]), 'protocol'), (frame(STATS, 1, b'\0' * 8192), 'protocol'),
                           (struct.pack('<IBBHQIIBBHI', MAGIC, 1, SUBMIT, 0, 1, 73 << 20, 0, 0, 0, 0, 0), 'too_large')):
            c = s.client()
            c.sock.sendall(data)
            a = c.read()
            assert a.kind == ERROR and a.code == code, (data[:40], a)
            c.close()
        c = s.client()
        c.sock.sendall(frame(SUBMIT, 7))
        a = c.read()
        assert a.code == 'invalid' and a.request == 7
        c.sock.sendall(frame(SUBMIT, 8, field(999, b'later version') + field(CANON, b'kernels=a')))
        assert c.wait(8).kind == RESULT
        c.close()
        alive(s)


def one_id_twice_is_refused():
    with Server() as s:
        c = s.client()
        c.sock.sendall(frame(SUBMIT, 5, field(CANON, b'compile=hang')) * 2)
        a = c.wait()
        assert a.code == 'protocol', a
        s.no_leftovers()
        c.close()


def random_bytes():
    seed = int(os.environ.get('AF_SEED', '1'))
    print(f'# seed {seed}')
    rng = random.Random(seed)
    valid = frame(HELLO, body=hello_body()) + frame(SUBMIT, 1, field(CANON, b'kernels=r')) + frame(STATS, 2)
    with Server() as s:
        for i in range(300):
            data = bytearray(valid)
            for _ in range(rng.randrange(1, 12)):
                at = rng.randrange(len(data))
                what = rng.randrange(3)
                if what == 0:
                    data[at] = rng.randrange(256)
                elif what == 1:
                    del data[at:at + rng.randrange(1, 9)]
                else:
                    data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
                if not data:
                    data = bytearray(b'x')
            c = raw(s, bytes(data), half_close=True)
            try:
                while True:
                    a = c.read()
                    if a.fd is not None:
                        os.close(a.fd)
            except (Closed, ConnectionResetError):
                pass
            c.close()
        alive(s)
        s.no_leftovers()


def a_source_is_of_a_kernel():
    with Server() as s:
        c = s.client()
        c.sock.sendall(frame(SOURCE, 5, field(KEY, bytes(32))))
        a = c.wait(5)
        assert a.kind == ERROR and a.code == 'not_found' and not a.retryable, a
        assert c.ask('kernels=a,b').kind == RESULT
        a = c.ask('kernels=a,b')
        sources = []
        for key in a.binaries():
            c.sock.sendall(frame(SOURCE, 9, field(KEY, key)))
            sources.append(c.wait(9))
        assert len(sources) == 2 and all(x.kind == SOURCE and x.text for x in sources), sources
        c.close()
        fatal_after_hello(s, frame(SOURCE, 1, field(KEY, bytes(31))))
        alive(s)


def fatal_after_hello(s, data):
    c = s.client()
    c.sock.sendall(data)
    a = c.read()
    assert a.kind == ERROR and a.code == 'protocol', a
    c.close()


def every_truncation():
    valid = frame(HELLO, body=hello_body()) + frame(SUBMIT, 1, field(CANON, b'kernels=t'))
    with Server() as s:
        for n in range(0, len(valid)):
            c = raw(s, valid[:n], half_close=True)
            try:
                while True:
                    c.read()
            except (Closed, ConnectionResetError):
                pass
            c.close()
        eventually(lambda: s.stats()['in_flight']['requests'] == 0, 'nothing waits')
        alive(s)


def half_frames_have_a_deadline():
    with Server(read_timeout_s=1) as s:
        silent, half = raw(s), raw(s, frame(HELLO, body=hello_body())[:20])
        body = s.client()
        body.sock.sendall(frame(SUBMIT, 1, field(CANON, b'x' * 100000))[:5000])
        idle = s.client()
        for c in (silent, half, body):
            a = c.read()
            assert a.kind == ERROR and 'in time' in a.text, a
            c.close()
        assert idle.ask('kernels=a').kind == RESULT  # between frames there is none
        idle.close()


def a_peer_that_does_not_read_is_not_read_from():
    with Server(read_timeout_s=3) as s:
        c = s.client(caps=0)
        a = c.ask('size=2000000')
        assert a.kind == RESULT, a
        c.sock.settimeout(0.2)
        sent = 0
        try:
            while sent < 100000:
                c.send('size=2000000')
                sent += 1
        except (socket.timeout, BlockingIOError):
            pass
        assert sent < 100000, 'the server took everything'
        assert s.stats()['in_flight']['connections'] == 2
        alive(s)
        # After the time-out it is gone.
        eventually(lambda: s.stats()['in_flight']['connections'] == 1, 'it is gone')
        c.close()


def unread_descriptors_are_few():
    with Server() as s:
        c = s.client()
        big = 'size=500000'
        c.ask(big).bundle()
        d = s.client()
        n = 200
        for _ in range(n):
            d.send(big)
        alive(s)
        # None is read yet; count what the kernel holds for this socket: at most 8 messages carry one.
        eventually(lambda: s.stats()['in_flight']['requests'] == 0, 'all are answered')
        held = 0
        d.sock.settimeout(5)
        first, anc, _, _ = d.sock.recvmsg(1, socket.CMSG_SPACE(64))
        d.buf += first
        for level, kind, data in anc:
            d.fds.append(struct.unpack('<i', data[:4])[0])
        for _ in range(n):
            a = d.read()
            assert a.kind == RESULT and a.fd is not None
            os.close(a.fd)
        c.close(), d.close()


def descriptors_that_clients_send_are_dropped():
    with Server() as s:
        fds = len(os.listdir(f'/proc/{s.process.pid}/fd'))
        c = s.client()
        r, w = os.pipe()
        for _ in range(50):
            socket.send_fds(c.sock, [frame(STATS, 3)], [w])
            c.wait(3)
        os.close(w)
        os.set_blocking(r, False)
        assert os.read(r, 1) == b'', 'the server holds a descriptor of the client'
        os.close(r)
        c.close()
        # The ledger and the first environment may have opened some of their own since; 50 were sent.
        eventually(lambda: len(os.listdir(f'/proc/{s.process.pid}/fd')) <= fds + 20, 'no descriptors of clients are kept')


def C32_large_texts_are_limited_and_others_are_served():
    with Server(receive_mib=80) as s:
        big, out = b'x' * (70 << 20), []

        def push():
            c = s.client()
            out.append(c.ask(big, text=True))
            c.close()
        threads = [threading.Thread(target=push) for _ in range(3)]
        [t.start() for t in threads]
        while any(t.is_alive() for t in threads):
            begin = time.monotonic()
            alive(s)
            assert time.monotonic() - begin < 5
        [t.join() for t in threads]
        assert {a.code for a in out} <= {'invalid', 'busy'} and len(out) == 3, out
        assert s.stats()['memory']['receive_bytes'] < 1 << 20


def C32_a_small_request_has_room_beside_a_large_one():
    with Server(receive_mib=80, jobs=1) as s:
        c, d = s.client(), s.client()
        hanging = c.send('plan=hang')
        eventually(lambda: d.stats()['jobs']['running'] == 1, 'the only job is taken')
        large = d.send('kernels=large ' + 'x' * (70 << 20))
        eventually(lambda: d.stats()['memory']['held_bytes'] > 60 << 20, 'the large one waits')
        small = d.send('kernels=small')
        another = c.ask('kernels=other ' + 'x' * (70 << 20))
        assert another.code == 'busy' and another.retryable, another
        c.cancel(hanging)
        answers = {a.request: a for a in (d.wait(), d.wait())}
        assert answers[small].kind == RESULT, answers
        assert set(answers) == {small, large}
        c.close(), d.close()


def many_connections():
    with Server(max_connections=200) as s:
        cs = [s.client() for _ in range(200)]
        try:
            s.client()
            raise AssertionError('one too many is taken')
        except Closed as e:
            assert 'busy' in str(e), e
        assert cs[0].stats()['connections_refused'] == 1
        [c.close() for c in cs]
        eventually(lambda: open_or_none(s), 'there is room again')


def open_or_none(s):
    try:
        s.client().close()
        return True
    except (Closed, OSError):
        return False


def out_of_descriptors():
    with Server() as s:
        s.stop()
        s.start(preexec_fn=lambda: __import__('resource').setrlimit(__import__('resource').RLIMIT_NOFILE, (64, 64)))
        cs = []
        try:
            for _ in range(100):
                cs.append(s.client(timeout=5))
        except (Closed, OSError):
            pass
        assert 20 < len(cs) < 64, len(cs)
        [c.close() for c in cs]
        eventually(lambda: open_or_none(s), 'there is room again')
        alive(s)


def too_many_requests_on_one_connection():
    with Server(max_requests=10) as s:
        c = s.client()
        ids = [c.send('compile=hang') for _ in range(11)]
        a = c.wait(ids[-1])
        assert a.code == 'busy' and a.retryable
        c.close()
        s.no_leftovers()


if __name__ == '__main__':
    sys.exit(run([malformed_headers_get_one_clear_line, malformed_frames_after_hello, one_id_twice_is_refused, random_bytes, every_truncation,
                  a_source_is_of_a_kernel,
                  half_frames_have_a_deadline, a_peer_that_does_not_read_is_not_read_from, unread_descriptors_are_few,
                  descriptors_that_clients_send_are_dropped, C32_large_texts_are_limited_and_others_are_served, C32_a_small_request_has_room_beside_a_large_one, many_connections, out_of_descriptors,
                  too_many_requests_on_one_connection]))
