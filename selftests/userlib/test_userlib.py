# SPDX-License-Identifier: GPL-2.0
"""libspindle where there is no kernel for it: a fake one, its symbols, pages and packaging."""

import os
import re
import subprocess

import pytest

HERE = os.path.dirname(os.path.realpath(__file__))
PROJECT = os.path.realpath(os.path.join(HERE, '..', '..'))
BUILD = os.path.join(PROJECT, 'build', 'check', 'userlib')
MAN = os.path.join(PROJECT, 'Documentation', 'man')
STEPS = int(os.environ.get('SPINDLE_TEST_STEPS', '400000'))
WARNINGS = ['-Wall', '-Wextra', '-Wpedantic', '-Werror']
# the sanitizers' runs are that much slower
SLOWER = {'plain': 1, 'address': 4, 'thread': 4}
TESTS = ['life_test', 'rings_test', 'model_test']

# pylint: disable=redefined-outer-name


def run(*argv, status=0, env=None, timeout=1500, **kwargs):
    """Output of a command; an outer make does not concern it."""
    clean = {k: v for k, v in os.environ.items()
             if k not in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL', 'CFLAGS', 'LDFLAGS', 'PREFIX')}
    done = subprocess.run(argv, env={**clean, **(env or {})}, text=True, check=False,
                          timeout=timeout, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **kwargs)
    assert (done.returncode == 0) == (status == 0), done.stdout
    return done.stdout


def text_of(*path):
    with open(os.path.join(*path), encoding='utf-8') as f:
        return f.read()


@pytest.fixture(scope='module', params=list(SLOWER))
def programs(request):
    """The tests' programs, of one kind."""
    where = os.path.join(BUILD, request.param)
    sanitize = [] if request.param == 'plain' else [f'SANITIZE={request.param}']
    run('make', '-j2', '-C', HERE, 'tests', f'TESTS={where}', *sanitize)
    return where, STEPS // SLOWER[request.param]


@pytest.mark.parametrize('name', TESTS)
def test_program(programs, name):
    where, steps = programs
    said = run(os.path.join(where, name), env={'SPINDLE_TEST_STEPS': str(steps)})
    plan = int(re.search(r'^1\.\.(\d+)$', said, re.M).group(1))
    assert plan >= 5
    assert len(re.findall(r'^ok \d+ - \w+$', said, re.M)) == plan, said
    assert not re.search(r'Sanitizer|runtime error|WARNING', said), said


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """The library as installed below another root, in a directory of another name."""
    dest = str(tmp_path_factory.mktemp('root'))
    run('make', '-C', PROJECT, 'install_userlib', f'DESTDIR={dest}', 'PREFIX=/opt/spindle',
        'LIBDIR=/opt/spindle/lib64', f'OUT={BUILD}/install', 'KDIR=')
    yield dest
    run('make', '-C', f'{PROJECT}/userlib', 'uninstall', f'DESTDIR={dest}', 'PREFIX=/opt/spindle',
        'LIBDIR=/opt/spindle/lib64')
    left = [f for _, _, files in os.walk(dest) for f in files]
    # the contract's header goes with the module
    assert left == ['spindle.h'], left


def exported(installed):
    said = run('nm', '-D', '--defined-only', f'{installed}/opt/spindle/lib64/libspindle.so')
    return [line.split()[-1] for line in said.splitlines()]


def declared():
    header = re.sub(r'/\*.*?\*/', '', text_of(PROJECT, 'userlib', 'spindle.h'), flags=re.S)
    return sorted(re.findall(r'^int (spindle_\w+)\(', header, re.M))


def test_what_is_exported_is_what_is_declared(installed):
    names = declared()
    assert len(names) == 25
    of_map = re.findall(r'^\t(spindle_\w+);', text_of(PROJECT, 'userlib', 'libspindle.map'), re.M)
    assert of_map == names
    assert sorted(exported(installed)) == sorted(['LIBSPINDLE_0.2', *(
        f'{name}@@LIBSPINDLE_0.2' for name in names)])


def test_the_static_library_takes_no_other_names(installed):
    said = run('nm', '-g', '--defined-only', f'{installed}/opt/spindle/lib64/libspindle.a')
    names = re.findall(r'^\w+ [A-Z] (\w+)$', said, re.M)
    assert not [n for n in names if not re.match('spindle_|spn_', n)]
    assert set(declared()) <= set(names)


def test_soname_and_what_it_needs(installed):
    said = run('readelf', '-d', f'{installed}/opt/spindle/lib64/libspindle.so')
    assert 'Library soname: [libspindle.so.0.2]' in said
    assert re.findall(r'Shared library: \[(.*?)\]', said) == ['libc.so.6']


def test_the_library_has_no_state_of_its_own(installed):
    said = run('size', '-A', f'{installed}/opt/spindle/lib64/libspindle.a')
    sizes = re.findall(r'^\.(?:data|bss|tdata|tbss)\s+(\d+)', said, re.M)
    assert sizes and not any(int(s) for s in sizes), said


def test_each_call_has_a_page(installed):
    pages = sorted(page for page in os.listdir(MAN) if page.endswith('.3'))
    assert pages == sorted(['libspindle.3', *(f'{name}.3' for name in declared())])
    assert sorted(os.listdir(f'{installed}/opt/spindle/share/man/man3')) == pages
    overview = text_of(MAN, 'libspindle.3')
    for name in declared():
        page = text_of(MAN, f'{name}.3')
        assert f'.TH {name.upper()} 3 ' in page
        assert f'{name} \\- ' in page
        assert f'"int {name}(' in page
        for section in ('SYNOPSIS', 'DESCRIPTION', 'RETURN VALUE', 'SEE ALSO'):
            assert f'.SH {section}\n' in page, (name, section)
        assert f'.BR {name} (3)' in overview


def test_pages_refer_to_pages():
    known = {p[:-2] for p in os.listdir(MAN)}
    for page in os.listdir(MAN):
        for name in re.findall(r'^\.BR (\w*spindle\w*) \(3\)', text_of(MAN, page), re.M):
            assert name in known, (page, name)


def test_prototypes_of_pages_are_those_of_the_header():
    header = re.sub(r'\s+', ' ', text_of(PROJECT, 'userlib', 'spindle.h'))
    for name in declared():
        lines = re.search(r'^\.B #include.*?\n\.fi$', text_of(MAN, f'{name}.3'), re.M | re.S)
        words = re.findall(r'^\.BI (.*)$', lines.group(0), re.M)
        # alternating fonts: arguments are joined without the blanks between them
        got = ' '.join(''.join(a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', line))
                       for line in words)
        assert re.sub(r'\s+', ' ', got) in header, got


def cflags(installed, *args):
    # as for a root that is mounted there
    said = run('pkg-config', *args, 'libspindle', env={
        'PKG_CONFIG_LIBDIR': f'{installed}/opt/spindle/lib64/pkgconfig',
        'PKG_CONFIG_SYSROOT_DIR': installed})
    return said.split()


def test_pkg_config(installed):
    assert cflags(installed, '--modversion') == ['0.2.0']
    flags = cflags(installed, '--cflags', '--libs')
    assert f'-I{installed}/opt/spindle/include' in flags
    assert f'-L{installed}/opt/spindle/lib64' in flags
    assert '-lspindle' in flags


def example():
    """The program of libspindle(3)."""
    text = re.search(r'^\.EX\n(.*?)^\.EE$', text_of(MAN, 'libspindle.3'), re.M | re.S).group(1)
    return text.replace('\\e', '\\').replace('\\-', '-')


def flags_of(installed):
    """For any user: what is in a system's directory is not warned of."""
    return [f.replace('-I', '-isystem', 1) if f.startswith('-I') else f
            for f in cflags(installed, '--cflags', '--libs')]


def test_the_manuals_example(installed, tmp_path):
    source = tmp_path / 'lines.c'
    source.write_text(example())
    program = str(tmp_path / 'lines')
    run('gcc', '-std=gnu11', *WARNINGS, '-o', program, str(source), *flags_of(installed))
    env = {'LD_LIBRARY_PATH': f'{installed}/opt/spindle/lib64'}
    assert 'Invalid argument' in run(program, 'nowhere', status=1, env=env)


CPLUSPLUS = '''
#include <spindle.h>
#include <spindle.h>

int main()
{
    spindle *handle = nullptr;
    spindle_group_create group = {};
    spindle_msg msg;
    unsigned int n;

    if (spindle_open(&handle, "not an address") != -22)
        return 1;
    return handle && spindle_create(handle, &group) + spindle_peek(handle, &msg, 1, &n) +
           spindle_wait(handle, SPINDLE_READABLE, SPINDLE_WAIT_SPIN, 0);
}
'''


@pytest.mark.parametrize('kind', ['shared', 'static'])
def test_a_program_in_cplusplus(installed, tmp_path, kind):
    source = tmp_path / 'main.cc'
    source.write_text(CPLUSPLUS)
    program = str(tmp_path / 'main')
    flags = flags_of(installed)
    if kind == 'static':
        flags = [f'{installed}/opt/spindle/lib64/libspindle.a' if f == '-lspindle' else f
                 for f in flags]
    run('g++', '-std=c++17', *WARNINGS, '-o', program, str(source), *flags)
    run(program, env={'LD_LIBRARY_PATH': f'{installed}/opt/spindle/lib64'})


@pytest.mark.parametrize('compiler', [
    ['gcc', '-std=c99', '-xc'], ['gcc', '-std=gnu17', '-xc'],
    ['g++', '-std=c++11', '-xc++'], ['g++', '-std=c++20', '-xc++'],
], ids=lambda c: '-'.join(a.strip('-') for a in c[:-1]))
def test_header_alone(compiler, tmp_path):
    main = tmp_path / 'main'
    main.write_text('#include <spindle.h>\n')
    assert run(compiler[0], *compiler[1:], *WARNINGS, '-fsyntax-only', f'-I{PROJECT}/userlib',
               '-isystem', f'{PROJECT}/uapi', str(main)) == ''


def test_ring_member_is_built_and_knows_its_arguments(tmp_path):
    said = run('make', '-C', HERE, f'OUT={tmp_path}')
    assert 'warning:' not in said
    assert os.listdir(tmp_path) == ['ring_member']
    program = f'{tmp_path}/ring_member'
    assert 'usage:' in run(program, status=1)
    assert 'Invalid argument' in run(program, 'x', 'g', '-', '1', '1', '1', status=1)
    assert 'not spin' in run(program, 'x', 'g', '-', '1', '1', '1', 'soon', status=1)
