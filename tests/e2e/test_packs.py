#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs in the hands of clients: answers with no server at all, and none against what a server says."""
import os, shutil, sys, tempfile
from afwire import *
from ctl import SAMPLES, ctl, ok

FIRST, SECOND = SAMPLES[0], SAMPLES[2]


class Files:
    """A pack of one sample, signed, made without a server."""

    def __enter__(self):
        self.base = tempfile.mkdtemp(prefix='afe2e.')
        self.pack, self.key = self.base + '/p.pack', self.base + '/key'
        ok(ctl('keygen', self.key))
        ok(ctl('pack', self.pack, FIRST, '--offline', '--sign', self.key))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.base)

    def env(self, **more):
        return {'AUTOFUSE_PACKS': self.pack, **more}


def hit(done):
    return ok(done).json()[0]['hit']


def an_image_needs_no_server():
    with Files() as f:
        assert hit(ctl('compile', FIRST, '--json', env=f.env())) == 'pack'
        assert hit(ctl('compile', FIRST, '--json', env=f.env(AUTOFUSE_PACK_KEY=f.key + '.pub'))) == 'pack'
        done = ok(ctl('run', FIRST, '--compare', env=f.env()))
        assert 'identical: largest error 0' in done.out, done
        done = ctl('compile', SECOND, env=f.env())
        assert done.code == 1 and 'no server' in done.err, done
        done = ctl('compile', FIRST, env={})
        assert done.code == 1, done


def a_pack_that_is_not_trusted_is_not_used():
    with Files() as f:
        ok(ctl('keygen', f.base + '/other'))
        for env in (f.env(AUTOFUSE_PACK_KEY=f.base + '/other.pub'), f.env(AUTOFUSE_PACK_KEY=f.base + '/none'), {'AUTOFUSE_PACKS': f.base + '/none'}):
            done = ctl('compile', FIRST, env=env)
            assert done.code == 1 and 'is not used' in done.err, done
        os.chmod(f.pack, 0o666)
        done = ctl('compile', FIRST, env=f.env())
        assert done.code == 1 and 'nobody else may write' in done.err, done
        os.chmod(f.pack, 0o600)
        data = bytearray(open(f.pack, 'rb').read())
        for at in range(300, len(data) - 2000, 97):
            data[at] ^= 1
        open(f.pack, 'wb').write(data)
        assert ctl('compile', FIRST, env=f.env()).code == 1, 'damaged bytes are no answer'


def a_server_decides_what_is_in_force():
    with Files() as f, Server(fake=False) as same, Server(fake=False, cache_salt='other') as other:
        for s in (same, other):
            eventually(lambda: [e for e in s.stats()['environments'] if e['state'] == 'ready'], 'its environment is loaded', timeout=120)
        # The command line's own environment has no precompiled twin and no salt of a server's: only a server's pack fits a server.
        ok(ctl('pack', f.pack, FIRST, '--socket', same.path, timeout=600))

        def packed():
            ok(ctl('clear', '--socket', same.path))  # of its own it has nothing
            return hit(ctl('compile', FIRST, '--json', '--socket', same.path, env=f.env(), timeout=600)) == 'pack'
        eventually(packed, 'the pack answers for the server whose environment it is of', timeout=120)
        made = other.stats()['fragment_compiles']
        assert hit(ctl('compile', FIRST, '--json', '--socket', other.path, env=f.env(), timeout=600)) == 'compiled'
        assert other.stats()['fragment_compiles'] == made + 1


if __name__ == '__main__':
    sys.exit(run([an_image_needs_no_server, a_pack_that_is_not_trusted_is_not_used, a_server_decides_what_is_in_force]))
