#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers on demand: 32 programs at once start one; what forbids it; whose server is believed. Users under setpriv."""
import os, shutil, signal, stat, subprocess, sys, tempfile, threading
from afwire import *
from ctl import *

PLAIN = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']


class Place:
    """A temporary place for a server that is started on demand; ends what was started there."""

    def __init__(self, uid=None):
        self.base = tempfile.mkdtemp(prefix='afauto.')
        if uid is not None:
            os.chown(self.base, uid, uid)
        self.path = self.base + '/run/core.sock'
        self.env = {'AUTOFUSE_SOCKET': self.path, 'AUTOFUSE_STATE_DIR': self.base + '/state', 'HOME': self.base, 'AUTOFUSE_AUTOSTART': None}

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


def C07_thirty_two_at_once_start_one():
    with Place() as p:
        done = [None] * 32

        def one(i):
            done[i] = ctl('run', '--compare', '--json', '-', input=SMALL, env=p.env)
        threads = [threading.Thread(target=one, args=(i,)) for i in range(32)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for d in done:
            assert ok(d).json()['identical'], d
        assert len(p.servers()) == 1, p.servers()
        st = ok(ctl('stats', '--json', env=p.env)).json()
        assert st['fragment_compiles'] == 1 and st['requests'] == 32, st


def C07_a_killed_server_is_started_again_over_its_dead_socket():
    with Place() as p:
        ok(ctl('compile', '-', input=SMALL, env=p.env))
        os.kill(p.servers()[0], signal.SIGKILL)
        eventually(lambda: not p.servers(), 'it is gone')
        assert stat.S_ISSOCK(os.stat(p.path).st_mode)
        assert ok(ctl('compile', '--json', '-', input=SMALL, env=p.env)).json()[0]['hit'] == 'store'
        assert len(p.servers()) == 1


def forbidden():
    with Place() as p:
        d = ctl('compile', '-', input=SMALL, env={**p.env, 'AUTOFUSE_AUTOSTART': '0'})
        assert d.code == 1 and 'no server is running' in d.err and not p.servers(), d


def C07_what_is_in_the_way_is_named():
    with Place() as p:
        os.makedirs(p.base + '/run')
        open(p.path, 'w').close()
        d = ctl('compile', '-', input=SMALL, env=p.env)
        assert d.code == 1 and 'is a file, not a socket' in d.err and d.err.count('\n') == 1 and os.path.getsize(p.path) == 0, d
    with Place() as p:
        d = ctl('compile', '-', input=SMALL, env={**p.env, 'AUTOFUSE_JOBS': 'many'})
        assert d.code == 1 and 'ended at once' in d.err and 'jobs' in d.err, d


def C11_the_server_keeps_nothing_of_its_starter():
    with Place() as p:
        r, w = os.pipe()
        os.set_inheritable(w, True)
        d = subprocess.Popen([CTL, 'stats'], env={k: v for k, v in {'PATH': os.environ['PATH'], **p.env}.items() if v is not None}, close_fds=False,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.close(w)
        out, err = d.communicate(timeout=60)
        assert d.returncode == 0, err
        assert os.read(r, 1) == b'', 'the pipe ends although the server lives'
        os.close(r)
        pid = p.servers()[0]
        assert os.getsid(pid) != os.getsid(0)


def C35_a_strangers_server_is_not_believed():
    if os.geteuid() != 0:
        return
    # An ordinary user's server; another ordinary user finds it.
    with Server(fake=True) as s:
        os.chmod(s.base, 0o755)
        os.makedirs(s.state, exist_ok=True)
        for d in (s.base, s.base + '/run', s.rules, s.state):
            os.chown(d, 1234, 1234)
        s.stop()
        open(s.log, 'w').close()
        os.chmod(s.log, 0o666)
        shutil.rmtree(s.state)
        os.chown(s.base, 1234, 1234)
        for name in os.listdir(s.base + '/run'):
            os.unlink(s.base + '/run/' + name)
        prefix = ['setpriv', '--reuid=1234', '--regid=1234', '--clear-groups']
        s.start(wait=False, prefix=prefix)
        eventually(lambda: os.path.exists(s.path), f'it listens: {s.tail()}')
        env = {'AUTOFUSE_SOCKET': s.path, 'HOME': os.path.join(s.base, 'nowhere')}
        d = ctl('compile', '-', input=SMALL, env=env, prefix=PLAIN)
        assert d.code == 1 and 'runs as user 1234, who is neither root, nor this user, nor configured' in d.err, d
        # Configured, it is spoken to; and answers that this user is not on its list.
        d = ctl('compile', '-', input=SMALL, env={**env, 'AUTOFUSE_SERVER_UID': '1234'}, prefix=PLAIN)
        assert d.code == 1 and 'not admitted' in d.err, d


def an_ordinary_user_gets_a_server_of_its_own():
    if os.geteuid() != 0:
        return
    with Place(uid=65534) as p:
        os.chmod(p.base, 0o755)
        env = {**p.env, 'AUTOFUSE_SOCKET': None, 'XDG_RUNTIME_DIR': p.base}
        p.path = p.base + '/autofused/core.sock'
        probe = subprocess.run([*PLAIN, 'test', '-x', CTL])
        if probe.returncode != 0:
            return  # this tree is closed to other users
        d = ok(ctl('run', '--compare', '--json', '-', input=SMALL, env=env, prefix=PLAIN))
        assert d.json()['identical'] and len(p.servers()) == 1, d
        assert os.stat(p.path).st_uid == 65534


if __name__ == '__main__':
    sys.exit(run([C07_thirty_two_at_once_start_one, C07_a_killed_server_is_started_again_over_its_dead_socket, forbidden, C07_what_is_in_the_way_is_named,
                  C11_the_server_keeps_nothing_of_its_starter, C35_a_strangers_server_is_not_believed, an_ordinary_user_gets_a_server_of_its_own]))
