# SPDX-License-Identifier: GPL-2.0
"""The Makefile, in a copy of the tree and from another directory."""

import os
import shutil
import subprocess

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
TREE = os.path.join(PROJECT, 'build', 'check', 'tree')
PARTS = ['Makefile', 'Kbuild', 'kmod', 'uapi', 'userlib', 'Documentation', 'scripts',
         '.gitignore']
BUILT = ('.o', '.ko', '.cmd', '.mod', '.mod.c', '.pyc')

# pylint: disable=redefined-outer-name


def run(*argv, cwd='/', status=0):
    """Output of a command; an outer make does not concern it."""
    env = {k: v for k, v in os.environ.items()
           if k not in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL', 'ARCH', 'KBUILD_OUTPUT', 'KDIR')}
    done = subprocess.run(argv, cwd=cwd, text=True, check=False, timeout=1500, env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert (done.returncode == 0) == (status == 0), done.stdout
    return done.stdout


def make(*args, **kwargs):
    return run('make', '-C', TREE, *args, **kwargs)


def files(where=TREE):
    return sorted(os.path.relpath(os.path.join(top, name), where)
                  for top, dirs, names in os.walk(where) if '.git' not in top.split('/')
                  for name in names)


def copy():
    """The sources as a clone has them, without what somebody built in the checkout."""
    shutil.rmtree(TREE, ignore_errors=True)
    os.makedirs(TREE)
    for part in PARTS:
        src, dst = os.path.join(PROJECT, part), os.path.join(TREE, part)
        if os.path.isdir(src):
            shutil.copytree(src, dst, ignore=lambda top, names: [
                n for n in names if n.endswith(BUILT) or n == '__pycache__'])
        else:
            shutil.copy2(src, dst)


@pytest.fixture(scope='module')
def tree():
    """A built tree."""
    copy()
    before = files()
    make('-j2')
    yield before
    shutil.rmtree(TREE)


def test_module(tree):
    about = run('modinfo', os.path.join(TREE, 'spindle.ko'))
    for field in ('license:', 'description:', 'version:', 'vermagic:'):
        assert field in about, about
    assert 'spindle.ko' not in tree


def test_a_second_make_builds_nothing(tree):
    built = os.stat(os.path.join(TREE, 'spindle.ko')).st_mtime_ns
    said = make()
    assert ' CC ' not in said, said
    assert os.stat(os.path.join(TREE, 'spindle.ko')).st_mtime_ns == built


def test_git_ignores_what_is_built(tree):
    run('git', 'init', '-q', TREE)
    try:
        seen = run('git', '-C', TREE, 'ls-files', '--others', '--exclude-standard').split('\n')
        assert sorted(filter(None, seen)) == tree
    finally:
        shutil.rmtree(os.path.join(TREE, '.git'))


def test_install_and_uninstall(tree, tmp_path):
    dest = str(tmp_path / 'dest')
    make('install', f'DESTDIR={dest}')
    found = files(dest)
    assert {'usr/include/linux/spindle.h', 'usr/share/man/man7/spindle.7'} <= set(found)
    library = {'usr/include/spindle.h', 'usr/lib/libspindle.a', 'usr/lib/libspindle.so',
               'usr/lib/libspindle.so.0.2', 'usr/lib/libspindle.so.0.2.0',
               'usr/lib/pkgconfig/libspindle.pc'}
    assert library <= set(found)
    pages = {name for name in found if name.startswith('usr/share/man/man3/')}
    assert {os.path.basename(name) for name in pages} == set(
        n for n in os.listdir(os.path.join(PROJECT, 'Documentation', 'man')) if n.endswith('.3'))
    modules = [name for name in found if name.startswith('lib/modules/')]
    assert len(modules) == 1 and modules[0].endswith('/updates/spindle.ko'), found
    assert len(found) == 3 + len(library) + len(pages)
    make('uninstall', f'DESTDIR={dest}')
    assert not files(dest)


def test_install_tools(tree, tmp_path):
    dest = str(tmp_path / 'dest')
    make('install_tools', f'DESTDIR={dest}')
    assert files(dest) == ['usr/bin/spindle-perf', 'usr/share/man/man1/spindle-perf.1']
    assert '--latency' in run(os.path.join(dest, 'usr/bin/spindle-perf'), '--help')
    make('uninstall_tools', f'DESTDIR={dest}')
    assert not files(dest)


def test_sparse_and_warnings_can_be_asked_for(tree):
    said = make('-j2', 'W=1', 'C=2', 'CHECK=sparse')
    assert ' CHECK ' in said and ' CC ' in said


def test_clean(tree):
    make('clean')
    assert files() == tree


def test_help_needs_nothing():
    assert 'make install' in run('make', '-f', f'{PROJECT}/Makefile', 'help')
    assert 'run scripts/setup' in run('make', '-C', PROJECT, 'help', 'KDIR=')


@pytest.mark.parametrize('kdir', ['', '/nonexistent'])
def test_no_headers(kdir):
    said = run('make', '-C', PROJECT, f'KDIR={kdir}', status=2)
    assert ('scripts/setup' if not kdir else '/nonexistent') in said


@pytest.mark.parametrize('part', ['socket', 'userlib', 'sim'])
def test_programs_without_warnings(part, tmp_path):
    variable = 'O' if part == 'sim' else 'OUT'
    said = run('make', '-j2', '-C', os.path.join(PROJECT, 'selftests', part),
               f'{variable}={tmp_path}')
    assert 'warning:' not in said, said
