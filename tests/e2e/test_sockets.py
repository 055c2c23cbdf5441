#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The path of the socket, who may connect, signals, state directories, socket activation."""
import os, pwd, shutil, signal, socket, sys, threading, time
from afwire import *
from ctl import SMALL, ctl, ok

USER = 12345  # an ordinary user; as root, permissions prove nothing
USERS = ('setpriv', '--reuid', str(USER), '--regid', str(USER), '--clear-groups')


def refused(s, *words, code=1, **kw):
    """The server says why in one line and ends."""
    before = len(s.tail(1 << 20))
    s.start(wait=False, **kw)
    assert s.process.wait(20) == code, s.tail()
    lines = [l for l in s.tail(1 << 20)[before:].splitlines() if l]
    assert len(lines) == 1 and all(w in lines[0] for w in words), lines


def C07_a_dead_socket_file_is_replaced():
    with Server() as s:
        s.stop(signal.SIGKILL)
        assert os.path.exists(s.path)
        s.start()
        assert s.client().ask('kernels=a').kind == RESULT


def C07_what_stands_in_the_way_is_named():
    s = Server()
    try:
        open(s.path, 'w').close()
        refused(s, s.path, 'no socket')
        os.unlink(s.path)
        os.mkdir(s.path)
        refused(s, s.path, 'directory')
        os.rmdir(s.path)
        stranger = socket.socket(socket.AF_UNIX)
        stranger.bind(s.path)
        stranger.listen()
        refused(s, s.path, 'another server')
        stranger.close()
        s.start()  # now it is dead
        s.stop()
    finally:
        s.__exit__(None)


def C07_long_paths():
    s = Server()
    try:
        run = os.path.join(s.base, 'run')
        name = run + '/' + 'x' * (107 - len(run) - 1)
        s.options['socket'] = s.path = name
        s.start()
        assert s.stop() == 0
        s.options['socket'] = name + 'y'
        refused(s, '108 bytes', '107')
    finally:
        s.__exit__(None)


def C05_no_lock_file_is_trusted():
    """Killed again and again; whatever it left, with whoever's number in it, holds nobody up: only locks of the kernel count."""
    with Server() as s:
        first = s.client().ask('kernels=a')
        for text in ('', f'{os.getpid()}\n', '1\n', 'x' * 100):
            s.stop(signal.SIGKILL)
            for name in ('lock', 'lmdb/lock.mdb', 'jobs/1', 'jobs/lock', 'lock.old'):
                with open(os.path.join(s.state, name), 'w') as f:
                    f.write(text)
            open(s.path + '.lock', 'w').write(text)
            s.start()
            a = s.client().ask('kernels=a')
            assert a.hit == HIT_STORE and a.key == first.key, a
            t = Server(base=s.base)
            t.log, t.options['socket'] = t.log + '2', s.path + '2'
            refused(t, s.state, 'in use')


def C07_clients_say_what_stands_at_the_path():
    """One clear line and code 1 each: nothing, a file, a directory, a dead socket, a stranger that hangs up or talks, a path of 109 bytes and more."""
    base = tempfile.mkdtemp(prefix='afe2e.')

    def said(path, word):
        d = ctl('compile', '-', input=SMALL, env={'AUTOFUSE_SOCKET': path}, timeout=120)
        assert d.code == 1 and d.err.count('\n') == 1 and path in d.err and word in d.err, (word, d)

    def serve(listener, answer):
        try:
            while True:
                c, _ = listener.accept()
                c.recv(1 << 16)
                c.sendall(answer)
                c.close()
        except OSError:
            pass
    try:
        open(base + '/file', 'w').close()
        os.mkdir(base + '/directory')
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(base + '/dead')
        dead.close()
        said(base + '/none', 'no server is running')
        said(base + '/file', 'is a file, not a socket')
        said(base + '/directory', 'is a directory, not a socket')
        said(base + '/dead', 'no server answers')
        for n in (108, 109, 300, 5000):
            said(base + '/' + 'x' * (n - len(base) - 1), f'{n} bytes')
        for name, answer in (('mute', b''), ('http', b'HTTP/1.1 400 Bad Request\r\n\r\n' + b' ' * 100), ('early', frame(RESULT, 7))):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(f'{base}/{name}')
            listener.listen()
            threading.Thread(target=serve, args=(listener, answer), daemon=True).start()
            said(f'{base}/{name}', '')
            listener.close()
    finally:
        shutil.rmtree(base)


def a_second_server_refuses():
    with Server() as s:
        t = Server(base=s.base)
        t.log += '2'
        t.options['socket'] = s.path + '2'
        refused(t, s.state, 'in use')
        t.options['socket'], t.options['state_dir'] = s.path, s.state + '2'
        refused(t, s.path, 'another server')
        assert s.client().ask('kernels=a').kind == RESULT


def many_servers_race_for_one_socket():
    servers = []
    base = tempfile.mkdtemp(prefix='afe2e.')
    try:
        for i in range(8):
            t = Server(base=base)
            t.log += str(i)
            servers.append(t.start(wait=False))
        servers[0].path and eventually(lambda: sum(t.process.poll() is None for t in servers) == 1, 'one is left')
        left = next(t for t in servers if t.process.poll() is None)
        left.ready()
        assert left.client().ask('kernels=a').kind == RESULT
    finally:
        for t in servers:
            t.stop(signal.SIGKILL)
        shutil.rmtree(base, ignore_errors=True)


def C07_clients_race_to_a_starting_server():
    """32 answers."""
    s = Server()
    try:
        out = []

        def client():
            def get():
                try:
                    return s.client()
                except (OSError, Closed):
                    return None
            c = eventually(get, 'it listens')
            out.append(c.ask('kernels=a').kind)
            c.close()
        threads = [threading.Thread(target=client) for _ in range(32)]
        [t.start() for t in threads]
        s.start(wait=False)
        [t.join() for t in threads]
        assert out == [RESULT] * 32
        assert s.stats()['fragment_compiles'] == 1
    finally:
        s.__exit__(None)


def C08_other_users_are_refused():
    if os.geteuid() != 0:
        print('# needs root')
        return
    with Server() as s:
        os.chmod(s.base, 0o755)
        probe = f"""
import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
from afwire import *
try:
    c = Client({s.path!r})
    a = c.ask('kernels=a')
    print('answer', a.kind, c.clear().code)
except Closed as e:
    print(e)
"""
        def ask():
            return subprocess.run([*USERS, '/usr/bin/python3', '-c', probe], stdout=subprocess.PIPE, text=True,
                                  cwd='/').stdout
        if not os.access(os.path.dirname(os.path.abspath(__file__)), os.X_OK):
            return
        text = ask()
        assert 'refused' in text and str(USER) in text and text.count('\n') == 1, text
        s.stop()
        s.options['allow_uid'] = f'7, {USER}'
        s.start()
        text = ask()
        assert text == f'answer {RESULT} refused\n', text  # may compile, may not clear
        # Neither admitted nor not does it reach a file of the server's.
        look = subprocess.run([*USERS, 'find', s.state, '-readable', '-o', '-writable'], capture_output=True, text=True)
        assert look.returncode != 0 and not look.stdout.replace(s.state + '\n', ''), look


def C33_state_directories_that_are_not_private():
    s = Server()
    try:
        os.mkdir(s.state, 0o700)
        os.chmod(s.state, 0o777)
        refused(s, s.state, '0700')
        os.rmdir(s.state)
        os.mkdir(s.state + '.real', 0o700)
        os.symlink(s.state + '.real', s.state)
        refused(s, s.state, 'symbolic link')
        os.unlink(s.state)
        if os.geteuid() == 0:
            os.mkdir(s.state, 0o700)
            os.chown(s.state, USER, USER)
            refused(s, s.state, f'uid {USER}')
            os.rmdir(s.state)
        s.start()
        assert oct(os.stat(s.state).st_mode & 0o777) == '0o700'
        assert s.client().ask('kernels=a').kind == RESULT
        s.stop()
        for root, _, files in os.walk(s.state):
            for f in files:
                assert os.stat(os.path.join(root, f)).st_mode & 0o077 == 0, os.path.join(root, f)
    finally:
        s.__exit__(None)


def C16_no_home():
    """HOME unset, empty, `/`, read-only: with a state directory it works, client included; without one the server says what is missing."""
    s = Server()
    try:
        closed = s.base + '/closed'
        os.mkdir(closed, 0o555)
        os.chmod(s.base, 0o755)
        state, user = s.options.pop('state_dir'), as_user(s)
        os.chmod(closed, 0o555)
        for home in (None, '', '/', closed):
            bare = [*user, 'env', *(['-u', 'HOME'] if home is None else [f'HOME={home}'])]
            if user:  # root has a place of its own; this user number has none
                wanted = (closed, 'Permission denied') if home == closed else ('no state directory', 'HOME')
                refused(s, *wanted, prefix=bare, env={'XDG_STATE_HOME': ''})
            s.options['state_dir'] = state
            s.start(wait=False, prefix=bare)
            eventually(lambda: s.process.poll() is None and connectable(s), 'it is up')
            d = ctl('stats', '--json', '--socket', s.path, env={'HOME': home}, prefix=user)
            assert d.code == 0 and d.json()['failures'] == 0, (home, d)
            s.stop(signal.SIGKILL)
            del s.options['state_dir']
    finally:
        s.__exit__(None)


def C16_one_policy_of_modes():
    """Whatever the mask of whoever starts it: the socket is for all, its directory 0755, and the state for its owner alone, files and directories."""
    for mask in (0, 0o022, 0o077, 0o777):
        s = Server(gate='on')
        try:
            shutil.rmtree(os.path.dirname(s.path))
            s.start(prefix=as_user(s), preexec_fn=lambda: os.umask(mask))
            assert s.client().ask('kernels=a').kind == RESULT
            gate = os.path.dirname(s.path) + '/gate.ipc'
            eventually(lambda: os.path.exists(gate), 'there is a gate')
            mode = lambda p: os.lstat(p).st_mode & 0o777
            assert mode(s.path) == 0o666 and mode(os.path.dirname(s.path)) == 0o755 and mode(s.state) == 0o700, (mask, mode(s.path), mode(s.state))
            for name in ('gate.ipc', 'events.ipc'):
                eventually(lambda: mode(os.path.dirname(s.path) + '/' + name) == 0o600, f'{name} is closed')
            for root, dirs, files in os.walk(s.state):
                for p in [os.path.join(root, n) for n in dirs + files]:
                    assert mode(p) in ((0o700,) if os.path.isdir(p) else (0o600,)), (oct(mask), p, oct(mode(p)))
            assert s.stop() == 0
        finally:
            s.__exit__(None)


def C17_a_read_only_mount_serves_hits():
    """A warm cache that is mounted read-only: hits; a miss is compiled and not stored."""
    s = Server()
    try:
        s.start()
        assert s.client().ask('kernels=a').kind == RESULT
        s.stop()
        mounted = ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"', s.state]
        if os.geteuid() != 0 or subprocess.run([*mounted, 'true'], stderr=subprocess.DEVNULL).returncode != 0:
            print('# no mount namespaces here')
            return
        s.options['tmp_dir'] = s.base + '/tmp'
        os.mkdir(s.base + '/tmp', 0o700)
        s.start(prefix=mounted)
        c = s.client()
        assert c.ask('kernels=a').hit == HIT_STORE
        a = c.ask('kernels=b')
        assert a.kind == RESULT and a.hit == HIT_COMPILED, a
        st = c.stats()['store']
        assert st['read_only'] and st['not_stored'] == 1, st
        assert 'cannot be written' in s.tail(1 << 20)
        c.close()
        assert s.stop() == 0
        s.start()
        assert not s.stats()['store']['read_only'] and s.client().ask('kernels=b').hit == HIT_COMPILED
    finally:
        s.__exit__(None)


def connectable(s):
    try:
        c = socket.socket(socket.AF_UNIX)
        c.connect(s.path)
        c.close()
        return True
    except OSError:
        return False


def as_user(s):
    """Prefix that runs a server as an ordinary user where we are root; the base becomes that user's."""
    if os.geteuid() != 0:
        return ()
    for root, dirs, files in os.walk(s.base):
        for n in dirs + files:
            os.lchown(os.path.join(root, n), USER, USER)
    os.chown(s.base, USER, USER)
    return USERS


def C16_C17_a_read_only_state_serves_hits():
    s = Server()
    try:
        prefix = as_user(s)
        os.chmod(s.base, 0o755)
        if prefix and not os.access(FAKEJOB, os.X_OK):
            return
        s.options['tmp_dir'] = os.path.join(s.base, 'tmp')
        os.makedirs(s.options['tmp_dir'], exist_ok=True)
        prefix = as_user(s)
        s.start(prefix=prefix)
        c = s.client()
        a = c.ask('kernels=a')
        assert a.kind == RESULT, a
        c.close()
        s.stop()
        os.chmod(s.state, 0o555)
        s.start(prefix=prefix)
        c = s.client()
        b = c.ask('kernels=a')
        assert b.kind == RESULT and b.hit == HIT_STORE, b
        d = c.ask('kernels=b')
        assert d.kind == RESULT and d.hit == HIT_COMPILED, d
        st = c.stats()
        assert st['store']['read_only'] and st['store']['not_stored'] == 1, st['store']
        assert 'cannot be written' in s.tail(1 << 20)
        c.close()
    finally:
        s.stop(signal.SIGKILL)
        os.chmod(s.state, 0o700)
        s.__exit__(None)


def C30_the_state_directory_may_move():
    with Server() as s:
        a = s.client().ask('kernels=a')
        s.stop()
        os.rename(s.state, s.state + '.moved')
        s.options['state_dir'] = s.state = s.state + '.moved'
        s.start()
        b = s.client().ask('kernels=a')
        assert b.hit == HIT_STORE and b.key == a.key and b.bundle() == a.bundle()


def C09_sigterm_drains():
    """What is in flight is answered, new work is refused as retryable."""
    with Server() as s:
        c, d = s.client(), s.client()
        i = c.send('kernels=a compile_ms=800')
        eventually(lambda: d.stats()['jobs']['running'] == 1 and d.stats()['in_flight']['kernels'] == 1, 'it compiles')
        s.process.send_signal(signal.SIGTERM)
        assert d.read().kind == DRAIN
        a = d.ask('kernels=b')
        assert a.code == 'draining' and a.retryable, a
        try:
            s.client()
            raise AssertionError('it still listens')
        except OSError:
            pass
        assert c.wait(i).kind == RESULT
        assert s.process.wait(10) == 0
        assert not os.path.exists(s.path)
        s.start()
        assert s.client().ask('kernels=a compile_ms=800').hit == HIT_STORE
        s.no_leftovers()


def a_drain_has_a_limit():
    with Server(drain_timeout_s=1) as s:
        c = s.client()
        i = c.send('compile=hang')
        eventually(lambda: s.stats()['in_flight']['kernels'] == 1, 'it compiles')
        begin = time.monotonic()
        s.process.send_signal(signal.SIGTERM)
        a = c.wait(i)
        assert a.code == 'draining' and a.retryable, a
        assert s.process.wait(10) == 0 and time.monotonic() - begin < 4
        s.no_leftovers()


def C09_a_deadline_ends_a_drain():
    """The last request goes while the server looks through its connections, of which more follow."""
    with Server() as s:
        c = s.client()
        others = [s.client() for _ in range(3)]
        i = c.send('plan=hang', deadline=2000)
        c.stats()  # it was taken in before
        s.process.send_signal(signal.SIGTERM)
        assert c.wait(i).code == 'deadline'
        assert s.process.wait(60) == 0
        [x.close() for x in others]
        s.no_leftovers()


def a_second_sigterm_ends_at_once():
    with Server() as s:
        c = s.client()
        c.send('compile=hang')
        eventually(lambda: s.stats()['in_flight']['kernels'] == 1, 'it compiles')
        s.process.send_signal(signal.SIGTERM)
        assert c.wait.__self__ is c and c.read().kind == DRAIN
        s.process.send_signal(signal.SIGTERM)
        assert s.process.wait(5) == 0
        s.no_leftovers()


def C09_sighup_reads_the_configuration_again():
    s = Server()
    try:
        conf = s.base + '/conf'
        open(conf, 'w').write('# a comment\njobs = 3\n  cache_salt = one\nno_such_key = 1\n')
        s.options['config'] = conf
        s.start()
        assert f'{conf}:4' in s.tail() and 'no_such_key' in s.tail()
        c = s.client()
        a = c.ask('kernels=a')
        assert c.stats()['jobs']['slots'] == 3
        open(conf, 'w').write('jobs = 5\ncache_salt = two\n')
        s.process.send_signal(signal.SIGHUP)
        eventually(lambda: c.stats()['jobs']['slots'] == 5, 'it has the new configuration')
        b = c.ask('kernels=a')
        assert b.key[:32] == a.key[:32] and b.key[32:] != a.key[32:]
        open(conf, 'w').write('jobs = many\n')
        s.process.send_signal(signal.SIGHUP)
        eventually(lambda: 'stays as it was' in s.tail(), 'it says so')
        assert c.stats()['jobs']['slots'] == 5 and c.ask('kernels=a').hit == HIT_STORE
        i = c.send('kernels=z compile_ms=500')
        eventually(lambda: s.stats()['in_flight']['kernels'] == 1, 'it compiles')
        s.process.send_signal(signal.SIGHUP)
        assert c.wait(i).kind == RESULT  # no reload drops work
        c.close()
        s.stop()
        open(conf, 'w').write('')
        s.options['jobz'] = 1
        refused(s, '--jobz', code=2)
    finally:
        s.__exit__(None)


def C11_socket_activation():
    s = Server()
    try:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(s.path)
        listener.listen(64)
        early = Client(s.path, hello=False)  # before there is a server
        early.sock.sendall(frame(HELLO, body=hello_body()))

        def become():
            os.dup2(listener.fileno(), 3)
            os.set_inheritable(3, True)
        shell = ['sh', '-c', 'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@"', 'sh']
        s.start(wait=False, prefix=shell, preexec_fn=become, close_fds=False)
        assert early.read().kind == HELLO
        a = early.ask('kernels=a')
        assert a.kind == RESULT, a
        early.close()
        assert s.stop() == 0
        assert os.path.exists(s.path), "systemd's socket stays"
        late = Client(s.path, hello=False)  # waits for the next server
        late.sock.sendall(frame(HELLO, body=hello_body()))
        s.start(wait=False, prefix=shell, preexec_fn=become, close_fds=False)
        assert late.read().kind == HELLO and late.ask('kernels=a').hit == HIT_STORE
        listener.close()
    finally:
        s.__exit__(None)


def C11_nothing_is_inherited():
    """Neither by the server nor by its jobs."""
    s = Server()
    try:
        r, w = os.pipe()
        os.set_inheritable(w, True)
        s.start(close_fds=False)
        os.close(w)
        os.set_blocking(r, False)
        assert os.read(r, 1) == b'', 'the server holds an inherited descriptor'
        c = s.client()
        c.send('plan=hang')

        def executed():
            pids = s.leftovers()
            return pids if all(open(f'/proc/{p}/cmdline', 'rb').read().startswith(FAKEJOB.encode()) for p in pids) else None
        eventually(lambda: s.stats()['jobs']['running'] == 1 and s.stats()['environment_loads'] == 1, 'a job runs, the plan')
        for pid in eventually(executed, 'it is executed, not only forked'):
            fds = {int(f) for f in os.listdir(f'/proc/{pid}/fd')}
            assert fds <= {0, 1, 2, 3}, [(f, os.readlink(f'/proc/{pid}/fd/{f}')) for f in fds]
            env = open(f'/proc/{pid}/environ', 'rb').read()
            assert b'HOME' not in env and env.count(b'=') <= 4, env
            assert os.readlink(f'/proc/{pid}/cwd') == '/'
        os.close(r)
    finally:
        s.__exit__(None)


def help_and_version():
    for option, word in (('--help', '--state-dir'), ('--version', 'autofused 0.')):
        p = subprocess.run([AUTOFUSED, option], stdout=subprocess.PIPE, text=True)
        assert p.returncode == 0 and word in p.stdout


if __name__ == '__main__':
    sys.exit(run([C07_a_dead_socket_file_is_replaced, C07_what_stands_in_the_way_is_named, C07_long_paths, C05_no_lock_file_is_trusted, C07_clients_say_what_stands_at_the_path, a_second_server_refuses, many_servers_race_for_one_socket,
                  C07_clients_race_to_a_starting_server, C08_other_users_are_refused, C33_state_directories_that_are_not_private, C16_no_home, C16_one_policy_of_modes, C17_a_read_only_mount_serves_hits,
                  C16_C17_a_read_only_state_serves_hits, C30_the_state_directory_may_move, C09_sigterm_drains, a_drain_has_a_limit, C09_a_deadline_ends_a_drain, a_second_sigterm_ends_at_once,
                  C09_sighup_reads_the_configuration_again, C11_socket_activation, C11_nothing_is_inherited, help_and_version]))
