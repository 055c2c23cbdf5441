#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""autofusectl's view of a running server: watch, top, history, why, warm from history, stop. Users under setpriv."""
import os, re, subprocess, sys, tempfile, threading
import ctl as ctl_module
from afwire import *
from ctl import *

PLAIN = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']


class Follow:
    """autofusectl with lines that come one by one."""

    def __init__(self, s, *args):
        self.lines = []
        self.p = subprocess.Popen([ctl_module.CTL, *args, '--socket', s.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=lambda: self.lines.extend(iter(self.p.stdout.readline, '')), daemon=True)
        self.thread.start()

    def until(self, wanted, what):
        return eventually(lambda: next((l for l in list(self.lines) if wanted(l)), None), f'{what}: {self.lines}', 60)

    def end(self, timeout=60):
        code = self.p.wait(timeout)
        self.thread.join()
        return code, self.p.stderr.read()


def env(s):
    return {'AUTOFUSE_SOCKET': s.path}


def watching(s):
    """Waits until somebody watches."""
    eventually(lambda: s.stats()['watchers']['now'] > 0, 'somebody watches')


def watch_prints_lines():
    with Server() as s:
        plain, colored = Follow(s, 'watch'), Follow(s, 'watch', '--color', 'always', '--event', 'request.')
        eventually(lambda: s.stats()['watchers']['now'] == 2, 'both watch')
        c = s.client()
        key = c.ask('kernels=a').key.hex()
        c.ask('compile=fail')
        line = plain.until(lambda l: 'request.miss' in l, 'a miss')
        assert re.match(r'\d\d:\d\d:\d\d\.\d{3} request\.miss +' + key[:12] + ' a new fragment\n$', line), line
        plain.until(lambda l: 'job.end' in l and 'compile a in ' in l, 'the job')
        plain.until(lambda l: 'request.failed' in l and 'compile: kernel.cpp:1: error: told to fail' in l, 'the failure')
        assert not any('\033' in l for l in plain.lines)
        line = colored.until(lambda l: 'request.failed' in l, 'the failure')
        assert '\033[1;31mrequest.failed' in line and all('request.' in l for l in colored.lines), colored.lines
        c.close()
        assert s.stop() == 0
        for f in (plain, colored):
            code, err = f.end()
            assert code == 1 and 'the server is gone' in err, err
        assert 'draining' in plain.lines[-1], plain.lines[-3:]


def watch_prints_json():
    with Server() as s:
        f = Follow(s, 'watch', '--json', '--event', 'request.submit', '--event', 'request.done', '-n', '2')
        watching(s)
        c = s.client()
        c.ask('kernels=a')
        assert f.end() == (0, '')
        assert [json.loads(l)['event'] for l in f.lines] == ['request.submit', 'request.done']
        c.close()


def top_shows_jobs_and_waiters():
    with Server() as s:
        a, b = s.client(), s.client()
        a.ask('kernels=done')
        a.ask('kernels=done')
        a.send('kernels=h compile=hang')
        b.send('kernels=h compile=hang')

        def look():
            t = ok(ctl('top', '--once', '--json', env=env(s))).json()
            jobs, waiting = t['stats']['running'], t['stats']['waiting']
            return t if jobs and jobs[0]['job'] == 'compile' and waiting and waiting[0]['waiters'] == 2 else None
        t = eventually(look, 'the job shows')
        assert t['stats']['running'][0]['what'] == 'h' and t['stats']['waiting'][0]['doing'] == 'compiling', t
        assert t['per_second']['requests'] > 0
        text = ok(ctl('top', '--once', env=env(s))).out
        assert re.search(r'compile +h +\d+ ', text) and re.search(r'compiling +2 ', text) and 'no compile for' in text, text
        f = Follow(s, 'top', '--json')
        eventually(lambda: len(f.lines) >= 2, 'it looks again')
        f.p.terminate()
        f.end()
        assert json.loads(f.lines[1])['over_s'] < json.loads(f.lines[0])['over_s'] + 3600
        a.close()
        b.close()


def history_and_stats():
    with Server() as s:
        c = s.client()
        key = c.ask('kernels=a').key.hex()
        for _ in range(4):
            c.ask('kernels=a')
        c.ask('compile=fail')
        text = ok(ctl('history', env=env(s))).out
        assert re.search(rf'miss +{key[:12]} .*a new fragment', text) and 'told to fail' in text, text
        assert ok(ctl('history', '--kind', 'compile', '--limit', 1, '--json', env=env(s))).json()['events'][0]['kind'] == 'compile'
        assert ok(ctl('history', '--fragment', key[:10], '--since', '1h', '--json', env=env(s))).json()['events']
        assert re.search(rf'{key[:16]} +4 +0 +1 +1 ', ok(ctl('history', '--top', env=env(s))).out)
        assert 'why requests missed' in ok(ctl('stats', '--ledger', env=env(s))).out
        assert ok(ctl('stats', '--ledger', '--json', env=env(s))).json()['misses'][0]['text'] == 'a new fragment'
        assert ctl('history', '--kind', 'odd', env=env(s)).code == 1 and ctl('history', '--since', '5x', env=env(s)).code == 2
        c.close()


def why_names_the_ingredient():
    with Server(fake=False, cache_salt='one') as s:
        ok(ctl('compile', SAMPLES[2], env=env(s)))
        text = ok(ctl('why', SAMPLES[2], env=env(s))).out
        assert 'yes: it hits' in text, text
        w = ok(ctl('why', SAMPLES[1], '--json', env=env(s))).json()
        assert not w['stored'] and w['why'] == 'a new fragment' and 300 < w['nearest']['likeness'] < 1000, w
        text = ok(ctl('why', SAMPLES[1], env=env(s))).out
        assert re.search(r'only there: .*relu', text) and re.search(r'only here: .*reduce_sum', text), text
        s.stop()
        s.options['cache_salt'] = 'two'
        s.start()
        text = ok(ctl('why', SAMPLES[2], env=env(s))).out
        assert 'no: another environment: salt\n' in text and '  salt: one -> two\n' in text and 'differs in 1,' in text, text
        w = ok(ctl('why', SAMPLES[2], '--json', env=env(s))).json()
        for key in (w['fragment'], w['fragment'] + w['entries'][0]['environment'], w['fragment'][:12]):
            assert ok(ctl('why', key, '--json', env=env(s))).json()['entries'][0]['differs'][0]['name'] == 'salt'
        assert ctl('why', 'ffffffffff', env=env(s)).code == 1 and ctl('why', s.base + '/nowhere', env=env(s)).code == 1


def warm_what_was_used_most():
    with Server() as s:
        c = s.client()
        for n, times in (('rare', 1), ('often', 9), ('some', 4)):
            for _ in range(times):
                c.ask(f'kernels={n}')
        before = c.ask('kernels=often').key
        s.set_environment('two')
        eventually(lambda: c.ask('kernels=probe').key[32:] != before[32:], 'the environment moves')
        w = Watcher(s.path)
        done = ok(ctl('warm', '--from-history', '--top', 2, '--json', env=env(s))).json()
        assert [d['outcome'] for d in done] == ['compiled', 'compiled'] and done[0]['fragment'] == before[:32].hex() and done[0]['uses'] == 10, done
        assert all(j['priority'] == 255 for j in w.wait('job.start', 2, job='plan'))
        assert c.ask('kernels=often').hit == HIT_STORE and c.ask('kernels=some').hit == HIT_STORE
        assert c.ask('kernels=rare').hit == HIT_COMPILED
        text = ok(ctl('warm', '--from-history', env=env(s))).out
        assert text == '4 fragments: 0 compiled, 4 found, 0 no longer stored, 0 failed\n', text
        assert ctl('warm', env=env(s)).code == 2 and ctl('warm', '--from-history', SAMPLES[0], env=env(s)).code == 2
        w.close()
        c.close()


def stop_drains_and_waits():
    with Server() as s:
        c = s.client()
        r = c.send('kernels=a compile_ms=1500')
        eventually(lambda: s.stats()['jobs']['running'] > 0, 'it compiles')
        ok(ctl('stop', env=env(s)))
        assert c.wait(r).hit == HIT_COMPILED and s.process.wait(60) == 0
        none = ctl('stop', env=env(s))
        assert none.code == 1 and 'no server is running' in none.err, none
        s.start()
        pid = s.process.pid
        assert ok(ctl('stop', '--json', env=env(s))).json() == {'stopped': pid} and s.process.wait(60) == 0
        c.close()


def stop_is_the_owners():
    if os.geteuid() != 0:
        return
    base = tempfile.mkdtemp(prefix='aflive.')
    os.chmod(base, 0o755)
    trusted = {'AUTOFUSE_SERVER_UID': str(os.getuid())}
    try:
        for options, said in (({}, 'not admitted'), ({'allow_uid': 65534}, 'cannot be signaled')):
            with Server(base=base, **options) as s:
                refused = ctl('stop', env={**env(s), **trusted}, prefix=PLAIN)
                assert refused.code == 1 and said in refused.err, refused
                assert s.client().ask('kernels=a').kind == RESULT
    finally:
        shutil.rmtree(base)


def stop_leaves_systemds_socket():
    """The process that made the socket is not the server."""
    with Server() as s:
        s.stop()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(s.path)
            listener.listen(16)
            os.set_inheritable(listener.fileno(), True)
            p = subprocess.Popen(['/bin/sh', '-c', f'exec 3<&{listener.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', 'sh', *s.argv()],
                                 pass_fds=[listener.fileno()], env={'PATH': os.environ['PATH'], 'HOME': s.base}, stderr=open(s.log, 'a'))
            try:
                refused = ctl('stop', env=env(s))
                assert refused.code == 1 and 'systemctl stop' in refused.err, refused
                assert p.poll() is None
            finally:
                p.terminate()
                p.wait(60)


sys.exit(run([watch_prints_lines, watch_prints_json, top_shows_jobs_and_waiters, history_and_stats, why_names_the_ingredient,
              warm_what_was_used_most, stop_drains_and_waits, stop_is_the_owners, stop_leaves_systemds_socket]))
