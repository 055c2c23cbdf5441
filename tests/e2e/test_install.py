#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed tree, moved to another place: everything is there, nothing comes from the source tree, a program links with pkg-config."""
import glob, json, os, re, shutil, signal, subprocess, sys, tempfile
from afwire import *
import ctl as tool
from ctl import SMALL, ctl, ok

BASE = tempfile.mkdtemp(prefix='afinst ')  # with a blank
ENV = {'HOME': BASE + '/home', 'AUTOFUSE_SOCKET': BASE + '/run/core.sock', 'AUTOFUSE_STATE_DIR': BASE + '/state', 'AUTOFUSE_AUTOSTART': None}
PREFIX = None


def installed_tree_is_whole():
    global PREFIX
    done = None
    for meson in filter(None, ('/usr/bin/meson', shutil.which('meson'))):  # the one that set the build up
        done = subprocess.run([meson, 'install', '-C', BUILD, '--no-rebuild', '--quiet', '--destdir', BASE + '/dest'], capture_output=True, text=True)
        if done.returncode == 0:
            break
    assert done and done.returncode == 0, done
    found = [os.path.dirname(d) for d, _, files in os.walk(BASE + '/dest') if os.path.basename(d) == 'bin' and 'autofusectl' in files]
    assert len(found) == 1, found
    PREFIX = BASE + '/moved here'
    os.rename(found[0], PREFIX)
    tool.CTL = PREFIX + '/bin/autofusectl'
    for f in ('bin/autofused', 'libexec/autofused/autofused-job', 'libexec/autofused/autofused-gate', 'include/autofuse.h', 'share/autofused/fragment.schema.json'):
        assert os.path.isfile(os.path.join(PREFIX, f)), f
    for d, ends in (('rules/fusion', '.yaml'), ('rules/soc', '.yaml'), ('rules/templates', '.j2'), ('twin', '.h')):
        ours = sorted(f for f in os.listdir(os.path.join(ROOT, d)) if f.endswith(ends))
        assert ours and ours == sorted(os.listdir(os.path.join(PREFIX, 'share/autofused', d))), d
    assert library('libautofuse.so') and library('libautofuse.a') and library('pkgconfig/autofuse.pc')


def library(name):
    return next(iter(glob.glob(glob.escape(PREFIX) + '/lib/**/' + name, recursive=True)), None)


def the_schema_is_json():
    schema = json.load(open(PREFIX + '/share/autofused/fragment.schema.json'))
    assert schema['properties']['schema'] and 'nodes' in schema['required'], schema


def compiles_offline_and_through_its_own_server():
    j = ok(ctl('run', '--offline', '--compare', '--json', '-', input=SMALL, env=ENV)).json()
    assert j['identical'] and j['launches'] == 1, j
    for hit in ('compiled', 'store'):
        j = ok(ctl('run', '--compare', '--json', '-', input=SMALL, env=ENV)).json()
        assert j['identical'] and j['launches'] == 1 and (j['hit'] == hit or hit == 'store'), j
    eventually(lambda: os.path.exists(BASE + '/run/gate.ipc'), 'the gate is there')
    assert servers() and all(os.readlink(f'/proc/{p}/exe') == PREFIX + '/bin/autofused' for p in servers()), servers()


def servers():
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            argv = open(f'/proc/{pid}/cmdline').read().split('\0')
        except OSError:
            continue
        if os.path.basename(argv[0]) == 'autofused' and ENV['AUTOFUSE_SOCKET'] in argv:
            found.append(int(pid))
    return found


def a_program_links_through_pkg_config():
    text = open(ROOT + '/docs/client.md').read()
    open(BASE + '/prog.c', 'w').write(re.search(r'```c\n(.*?)```', text, re.S).group(1))
    pc = library('pkgconfig/autofuse.pc')
    config = open(pc).read()
    open(pc, 'w').write(re.sub(r'^prefix=.*$', 'prefix=' + PREFIX.replace(' ', '\\ '), config, flags=re.M))
    env = {'PATH': os.environ['PATH'], 'PKG_CONFIG_PATH': os.path.dirname(pc)}
    for static in ([], ['--static']):
        flags = subprocess.run(['pkg-config', *static, '--cflags', '--libs', 'autofuse'], env=env, capture_output=True, text=True, check=True).stdout
        if static:  # the archive instead of the shared library
            flags = flags.replace('-lautofuse', '-l:libautofuse.a')
        build = subprocess.run(['sh', '-c', f'gcc -Wall -Werror prog.c -o prog {flags.strip()}'], cwd=BASE, capture_output=True, text=True)
        assert build.returncode == 0, (flags, build.stderr)
        run = subprocess.run([BASE + '/prog'], env={**{k: v for k, v in ENV.items() if v}, 'LD_LIBRARY_PATH': os.path.dirname(library('libautofuse.so'))},
                             capture_output=True, text=True)
        assert run.stdout == 'y[0] = 0, y[511] = 0, y[1023] = 512\n', run


def reads_the_installed_rules_and_headers_only():
    rule = sorted(glob.glob(glob.escape(PREFIX) + '/share/autofused/rules/fusion/*.yaml'))[0]
    kept = open(rule).read()
    open(rule, 'w').write(kept + 'nonsense: [\n')
    d = ctl('explain', '-', input=SMALL, env=ENV)
    assert d.code == 1 and 'moved here/share/autofused' in d.err, d
    open(rule, 'w').write(kept)
    header = PREFIX + '/share/autofused/numeric/prim.h'
    with open(header, 'a') as f:
        f.write('#error installed header\n')
    d = ctl('run', '--offline', '-', input=SMALL, env=ENV)
    assert d.code == 1 and 'moved here/share/autofused' in d.err, d


def main():
    try:
        return run([installed_tree_is_whole, the_schema_is_json, compiles_offline_and_through_its_own_server, a_program_links_through_pkg_config,
                    reads_the_installed_rules_and_headers_only])
    finally:
        for pid in servers():
            os.kill(pid, signal.SIGTERM)
        eventually(lambda: not servers(), 'the server has ended')
        shutil.rmtree(BASE)


if __name__ == '__main__':
    sys.exit(main())
