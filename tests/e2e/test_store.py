#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The store's owner at work: verify, collect garbage, export, import, packs."""
import json, os, re, shutil, subprocess, sys, tempfile
from afwire import *

CTL = os.path.join(BUILD, 'tools', 'autofusectl')
WORDS = [f'kernels=k{i},shared size={5000 + 50 * i}' for i in range(12)]


def ctl(*args, prefix=(), **kw):
    return subprocess.run([*prefix, CTL, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, **kw)


def ctl_json(s, *args):
    p = ctl(*args, '--json', '--socket', s.path)
    assert p.returncode == 0, p.stderr
    return json.loads(p.stdout)


def fill(s, words=WORDS):
    c = s.client()
    out = {}
    for w in words:
        a = c.ask(w)
        assert a.kind == RESULT, a
        out[w] = a.binaries()
    c.close()
    return out


def environment(s):
    c = s.client()
    env = c.ask(WORDS[0]).key[32:]
    c.close()
    return env


def records(s):
    return s.stats()['store']['records']


def a_sound_store_verifies():
    with Server() as s:
        fill(s)
        done = ctl_json(s, 'verify-store')
        assert done['damaged'] == 0 and done['records'] >= 3 * len(WORDS), done
        p = ctl('verify-store', '--socket', s.path)
        assert p.returncode == 0 and 'damaged' in p.stdout, p


def C01_damage_is_found_and_heals():
    with Server() as s:
        binaries = fill(s)
        s.stop()
        wanted = list(binaries[WORDS[3]].values())[0]
        path = f'{s.state}/lmdb/data.mdb'
        data = open(path, 'rb').read()
        with open(path, 'r+b') as f:
            at = data.find(wanted)
            assert at > 0
            while at >= 0:
                f.seek(at + 7)
                f.write(bytes([data[at + 7] ^ 1]))
                at = data.find(wanted, at + 1)
        p = ctl('verify-store', '--json', '--state', s.state)
        assert p.returncode == 1 and json.loads(p.stdout)['damaged'] == 1, (p.stdout, p.stderr)
        p = ctl('verify-store', '--json', '--state', s.state)
        assert p.returncode == 0 and json.loads(p.stdout)['damaged'] == 0, (p.stdout, p.stderr)
        s.start()
        assert fill(s) == binaries
        assert s.stats()['kernel_compiles'] == 1
        p = ctl('verify-store', '--state', s.state)
        assert p.returncode == 1 and 'error:' in p.stderr, 'a directory that a server holds'


def garbage_of_other_environments_goes():
    with Server() as s:
        fill(s)
        c = s.client()
        old = c.ask(WORDS[0]).key
        s.set_environment('two')
        eventually(lambda: c.ask(WORDS[0]).key != old, 'the new environment is in force')
        c.close()
        second = fill(s, WORDS[:4])
        before = records(s)
        kept = ctl_json(s, 'gc')
        assert kept['bundles_deleted'] == kept['kernels_deleted'] == 0, kept
        assert records(s) == before
        done = ctl_json(s, 'gc', '--current-only')
        assert done['bundles_deleted'] == before['bundles'] - 4, (done, before)
        now = records(s)
        assert now['bundles'] == 4 and now['fragments'] == 4 and now['kernels'] == 5, now
        n = s.stats()['fragment_compiles']
        assert fill(s, WORDS[:4]) == second
        assert s.stats()['fragment_compiles'] == n, 'what stays is still a hit'
        fill(s)
        assert s.stats()['fragment_compiles'] == n + len(WORDS) - 4


def garbage_by_size():
    with Server() as s:
        fill(s, [f'kernels=big{i} size=200000' for i in range(20)])
        done = ctl_json(s, 'gc', '--max-mib', 1)
        assert done['used_after'] <= 1 << 20 < done['used_before'], done
        p = ctl('gc', '--socket', s.path)
        assert p.returncode == 0 and re.search(r'used_after +[0-9.]+ [KM]iB', p.stdout), p


def an_export_is_imported_elsewhere():
    base = tempfile.mkdtemp(prefix='afe2e.')
    try:
        pack = base + '/all.pack'
        with Server() as a:
            answers = fill(a)
            p = ctl('export', pack, '--json', '--socket', a.path)
            assert p.returncode == 0, p.stderr
            done = json.loads(p.stdout)
            assert done['bundles'] == len(WORDS) and done['left_out'] == 0 and done['bytes'] == os.stat(pack).st_size, done
            assert not [n for n in os.listdir(base) if n != 'all.pack']
        with Server() as b:
            eventually(lambda: [e for e in b.stats()['environments'] if e['state'] == 'ready'], 'it knows what is current')
            done = ctl_json(b, 'import', pack)
            assert done == {'stored': len(WORDS), 'current': len(WORDS), 'damaged': 0, 'failed': 0}, done
            assert fill(b) == answers
            st = b.stats()
            assert st['fragment_compiles'] == st['kernel_compiles'] == 0 and st['hits'] == len(WORDS), st
            # The same bytes as the other server's own, not only the same kernels.
            again = base + '/again.pack'
            assert ctl('export', again, '--socket', b.path).returncode == 0
            assert open(again, 'rb').read() == open(pack, 'rb').read()
        with Server() as c:
            old = environment(c)
            c.set_environment('another')
            eventually(lambda: environment(c) != old, 'the new environment is in force')
            done = ctl_json(c, 'import', pack)
            assert done['stored'] == len(WORDS) and done['current'] == 0, done
            before = c.stats()['fragment_compiles']
            fill(c)
            assert c.stats()['fragment_compiles'] == before + len(WORDS) - 1, 'what was imported belongs to the other environment'
    finally:
        shutil.rmtree(base)


def keys_are_whole_or_not_there(d):
    """Nothing is overwritten, a link neither; where one of the two cannot be made the other is not left."""
    os.mkdir(d)
    os.symlink('nowhere', d + '/link')
    os.mkdir(d + '/blocked.pub')
    open(d + '/old.pub', 'w').write('old')
    before = sorted(os.listdir(d))
    for path in (d + '/link', d + '/blocked', d + '/old', d + '/none/key', d + '/', d):
        p = ctl('keygen', path)
        assert p.returncode == 1 and p.stderr.count('\n') == 1 and not p.stdout, (path, p)
    assert sorted(os.listdir(d)) == before and open(d + '/old.pub').read() == 'old', os.listdir(d)
    assert ctl('keygen', d + '/-').returncode == 0 and sorted(os.listdir(d)) == sorted([*before, '-', '-.pub'])


def packs_are_signed_and_checked():
    base = tempfile.mkdtemp(prefix='afe2e.')
    try:
        key, other, pack = base + '/key', base + '/other', base + '/p.pack'
        for k in (key, other):
            assert ctl('keygen', k).returncode == 0
            assert os.stat(k).st_mode & 0o777 == 0o600
        assert ctl('keygen', key).returncode == 1, 'a key is never overwritten'
        keys_are_whole_or_not_there(base + '/keys')
        with Server() as s:
            fill(s)
            assert ctl('export', pack, '--sign', key, '--socket', s.path).returncode == 0
            listed = json.loads(ctl('import', pack, '--list', '--json').stdout)
            assert len(listed) == len(WORDS) and all(e['bundle_bytes'] > 0 for e in listed)
            assert 'signed' in ctl('import', pack, '--list', '--key', key + '.pub').stdout
            p = ctl('import', pack, '--key', other + '.pub', '--socket', s.path)
            assert p.returncode == 1 and 'signed' in p.stderr, p
            data = bytearray(open(pack, 'rb').read())
            data[1000] ^= 1
            open(pack, 'wb').write(data)
            p = ctl('import', pack, '--key', key + '.pub', '--json', '--socket', s.path)
            assert p.returncode == 1 and json.loads(p.stdout)['damaged'] == 1, (p.stdout, p.stderr)
            open(pack, 'wb').write(data[:500])
            p = ctl('import', pack, '--socket', s.path)
            assert p.returncode == 1 and 'damaged' in p.stderr, p
            p = ctl('import', base + '/none', '--socket', s.path)
            assert p.returncode == 1 and 'No such file' in p.stderr, p
    finally:
        shutil.rmtree(base)


def bad_imports_are_refused():
    with Server() as s:
        fill(s, WORDS[:1])
        c = s.client()

        def send(**change):
            fields = {KEY: bytes(64), 48: b'', 49: b'', 50: b'\0', CANON: b'kernels=x', BUNDLE: b'junk' * 100, **change}
            c.sock.sendall(frame(17, 900, b''.join(field(t, v) for t, v in fields.items() if v is not None)))
            return c.wait(900)
        a = send()
        assert a.code == 'invalid' and "another fragment's" in a.text, a
        a = send(**{})
        assert a.kind == ERROR
        c.sock.sendall(frame(17, 901, field(KEY, bytes(64))))
        a = c.wait(901)
        assert a.code == 'invalid' and 'missing' in a.text, a
        c.sock.sendall(frame(16, 902, field(43, b'{"action":"dance"}')))
        a = c.wait(902)
        assert a.code == 'invalid' and 'action' in a.text, a
        c.sock.sendall(frame(16, 903))
        assert c.wait(903).code == 'invalid'
        c.close()
        blind = s.client(caps=0)
        blind.sock.sendall(frame(16, 904, field(43, b'{"action":"export"}')))
        a = blind.wait(904)
        assert a.code == 'invalid' and 'descriptors' in a.text and not blind.progress, a
        blind.close()
        assert records(s)['bundles'] == 1


def C08_only_the_owner_may():
    if os.geteuid() != 0:
        print('# needs root to be another user')
        return
    with Server(allow_uid=65534) as s:
        for d in (s.base, s.base + '/run'):
            os.chmod(d, 0o755)
        fill(s, WORDS[:2])
        nobody = ('setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups')
        own = s.base + '/own'
        os.mkdir(own)
        os.chown(own, 65534, 65534)
        pack = own + '/x.pack'
        assert ctl('export', s.base + '/x.pack', '--socket', s.path).returncode == 0
        for args in (('gc',), ('verify-store',), ('export', pack), ('import', s.base + '/x.pack')):
            p = ctl(*args, '--socket', s.path, prefix=nobody, env={'PATH': os.environ['PATH'], 'AUTOFUSE_SERVER_UID': '0'})
            assert p.returncode == 1 and 'own user' in p.stderr, p
        assert os.listdir(own) == [] and records(s)['bundles'] == 2


def C08_root_exports_from_anyones_server():
    if os.geteuid() != 0:
        print('# needs root to be another user')
        return
    with tempfile.TemporaryDirectory(prefix='afe2e.') as base:
        os.chmod(base, 0o755)
        s = Server(base=base)
        for d, _, files in os.walk(base):
            for n in (d, *(os.path.join(d, f) for f in files)):
                os.chown(n, 65534, 65534)
        s.start(prefix=('setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups'))
        try:
            os.environ['AUTOFUSE_SERVER_UID'] = '65534'
            fill(s, WORDS[:2])
            p = ctl('export', base + '/x.pack', '--json', '--socket', s.path)
            assert p.returncode == 0 and json.loads(p.stdout)['bundles'] == 2, p
        finally:
            del os.environ['AUTOFUSE_SERVER_UID']
            s.stop()


if __name__ == '__main__':
    sys.exit(run([a_sound_store_verifies, C01_damage_is_found_and_heals, garbage_of_other_environments_goes, garbage_by_size,
                  an_export_is_imported_elsewhere, packs_are_signed_and_checked, bad_imports_are_refused, C08_only_the_owner_may, C08_root_exports_from_anyones_server]))
