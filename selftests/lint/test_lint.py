# SPDX-License-Identifier: GPL-2.0
"""What can be said of the sources without running them.

A tool that is missing is a failure: scripts/setup installs them all.
"""

import functools
import io
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

import pytest

PROJECT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(PROJECT, 'scripts'))

# pylint: disable=wrong-import-position
from vmlib import kernels

BUILD = os.path.join(PROJECT, 'build', 'check')
HEADER = 'uapi/linux/spindle.h'
MANUALS = r'Documentation/(spindle\.7|man/.*\.3)'
SHARED = 'core/ and the wire format are built in user space too'
# checkpatch's types that are no faults here, and why
IGNORED = {
    'kmod': {
        'BIT_MACRO': SHARED + ', as is the uapi header: no BIT() there',
        'EMBEDDED_FUNCTION_NAME': 'a compile probe passes any string',
        'MACRO_ARG_REUSE': SHARED + ', where min() and the like are plain',
        'PREFER_KERNEL_TYPES': SHARED + ', where env.h makes u32 of uint32_t',
        'UNCOMMENTED_DEFINITION': 'the kernel-doc above a struct says what its locks guard',
        'VOLATILE': SHARED + ', where env.h makes READ_ONCE()',
    },
    'tracepoints': {
        'OPEN_ENDED_LINE': 'TRACE_EVENT() is written so everywhere, a line for each field',
        'PARENTHESIS_ALIGNMENT': 'likewise',
    },
    'user space': {
        'BIT_MACRO': 'the kernel has it',
        'CAMELCASE': '_Static_assert',
        'COMPLEX_MACRO': 'tables of tests are lists of initializers',
        'EMBEDDED_FUNCTION_NAME': 'a message names the option of that name',
        'LONG_LINE_STRING': 'what a user searches for is not split',
        'MACRO_ARG_REUSE': 'no macro of a test is given side effects',
        'MSLEEP': "the harness' own, which keeps the time",
        'NAKED_SSCANF': 'into variables that have a value before',
        'PARENTHESIS_ALIGNMENT': 'tables of tests are lists of initializers',
        'PREFER_DEFINED_ATTRIBUTE_MACRO': 'the kernel has them',
        'PREFER_KERNEL_TYPES': 'stdint.h has those of user space',
        'QUOTED_WHITESPACE_BEFORE_NEWLINE': 'part of a protocol',
        'STATIC_CONST': 'taken in by a macro that is an attribute',
        'STATIC_CONST_CHAR_ARRAY': 'argument vectors of execve() are not const',
        'VOLATILE': 'what makes READ_ONCE() here',
    },
}
# these have no place for a comment, or are read as they are
NO_LICENCE = re.compile(r'LICENSE|.*\.(patch|md|sed\.txt|json)|Documentation/ABI/.*')


@functools.lru_cache(None)
def tracked():
    """The project's files: git's, or all but what is built where there is no git."""
    done = subprocess.run(['git', '-C', PROJECT, '-c', f'safe.directory={PROJECT}', 'ls-files',
                           '-z'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                          text=True)
    if done.returncode == 0 and done.stdout:
        names = done.stdout.split('\0')[:-1]
    else:
        names = []
        for top, dirs, here in os.walk(PROJECT):
            dirs[:] = set(dirs) - {'build', '.git', '__pycache__', '.pytest_cache'}
            names += [os.path.relpath(os.path.join(top, f), PROJECT) for f in here]
    # one that is removed but not yet committed
    return sorted(n for n in names if os.path.isfile(os.path.join(PROJECT, n)))


def files(pattern):
    return [name for name in tracked() if re.fullmatch(pattern, name)]


@functools.lru_cache(None)
def text_of(name):
    with open(os.path.join(PROJECT, name), encoding='utf-8') as f:
        return f.read()


def scripts_of(interpreter):
    """The programs whose first line names it."""
    return [n for n in tracked() if re.match(rf'#!\S*/(env )?({interpreter})\b', text_of(n)[:60])]


def run(*argv, cwd=PROJECT, **kwargs):
    """Status and output, both streams, of a program that an outer make does not concern."""
    env = {k: v for k, v in os.environ.items()
           if k not in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL', 'ARCH', 'KBUILD_OUTPUT', 'KDIR')}
    done = subprocess.run(argv, cwd=cwd, env={**env, 'LC_ALL': 'C.UTF-8'}, check=False, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **kwargs)
    return done.returncode, done.stdout


def silent(*argv, **kwargs):
    status, said = run(*argv, **kwargs)
    assert not said and status == 0, f'{" ".join(argv[:3])} ...: status {status}\n{said}'


def source_script(name):
    """One of the scripts that come with the kernel's source."""
    return os.path.join(kernels.source_tree()[0], 'scripts', name)


# C

@pytest.mark.parametrize('group,pattern', [
    ('kmod', r'(kmod|uapi)/(?!observe/trace\.h).*\.[ch]|Kbuild|Makefile'),
    ('tracepoints', r'kmod/observe/trace\.h'),
    ('user space', r'(selftests|scripts|userlib)/.*\.[ch]'),
], ids=['kmod', 'tracepoints', 'userspace'])
def test_checkpatch(group, pattern):
    names = [os.path.join(PROJECT, name) for name in files(pattern)]
    assert names
    # it looks for more names in an include/, and leaves a file in its directory
    os.makedirs(os.path.join(BUILD, 'include'), exist_ok=True)
    _, said = run(source_script('checkpatch.pl'), '--strict', '--no-tree', '--show-types',
                  '--terse', '--no-summary', '--root', BUILD, '--ignore',
                  ','.join(IGNORED[group]), '-f', *names, cwd=BUILD)
    assert not said, said.replace(PROJECT + '/', '')


def test_each_ignored_type_is_one():
    """A table with misspelt types would hide nothing and look as if it did."""
    _, said = run(source_script('checkpatch.pl'), '--list-types')
    known = set(re.findall(r'^\s*\d+\s+(\w+)', said, re.M))
    assert {t for table in IGNORED.values() for t in table} <= known


def module_build(kernel, *args, name='lint'):
    """Build the module anew in a tree of its own; what make said."""
    where = os.path.join(BUILD, f'{name}-{kernel.name}')
    shutil.rmtree(where, ignore_errors=True)
    kernels.copy_tree(kernel, where)
    status, said = run('make', kernels.jobs(), '-C', kernel.kdir, f'M={where}', *kernel.make_args(),
                       *(['CONFIG_SPINDLE_KUNIT=y'] if kernel.kunit else []), *args, 'modules')
    assert status == 0, said
    assert os.path.exists(os.path.join(where, 'spindle.ko'))
    # only a failure is worth the space
    shutil.rmtree(where)
    return said, where


@pytest.mark.parametrize('name', ['debian-6.1', 'debian-6.12', 'uml'])
def test_no_warnings(name):
    said, _ = module_build(kernels.ensure(name), 'W=1', name='w1')
    bad = [line for line in said.splitlines() if re.search(r'warning|error', line, re.I)]
    assert not bad, '\n'.join(bad)


def test_sparse():
    said, where = module_build(kernels.ensure('debian-6.1'), 'C=2', 'CHECK=sparse',
                               'CF=-Wcontext', name='sparse')
    assert 'CHECK' in said, 'sparse did not run'
    bad = [line for line in said.splitlines() if line.startswith(where + '/')]
    assert not bad, '\n'.join(bad)


def test_kernel_doc():
    status, said = run(source_script('kernel-doc'), '-none', '-Werror',
                       *files(r'(kmod|uapi|userlib)/.*\.[ch]'))
    assert status == 0 and not said, said


@pytest.mark.parametrize('compiler', [
    ['gcc', '-std=c99', '-xc'], ['gcc', '-std=gnu17', '-xc'], ['gcc', '-std=c99', '-m32', '-xc'],
    ['g++', '-std=c++11', '-xc++'], ['g++', '-std=c++20', '-xc++'],
], ids=lambda c: '-'.join(a.strip('-') for a in c[:-1]))
def test_uapi_header_alone(compiler, tmp_path):
    main = tmp_path / 'main'
    main.write_text('#include <linux/spindle.h>\n#include <linux/spindle.h>\n')
    silent(compiler[0], *compiler[1:], '-Wall', '-Wextra', '-Wpedantic', '-Wpadded', '-Werror',
           '-fsyntax-only', f'-I{PROJECT}/uapi', f'-I{multiarch()}', str(main))


def multiarch():
    """Where asm/types.h is; -m32 alone does not look there."""
    return '/usr/include/' + run('gcc', '-print-multiarch')[1].strip()


def structures():
    """The header's structures: {name: members}."""
    found = {}
    for name, body in re.findall(r'^struct (\w+) \{(.*?)^\};', text_of(HEADER), re.M | re.S):
        body = re.sub(r'/\*.*?\*/', '', body, flags=re.S)
        found[name] = re.findall(r'(\w+)(?:\[\w*\])?;', body)
        assert len(found[name]) == body.count(';')
    return found


def layout(bits, where):
    """Sizes and offsets, each as the size of an array in an object file."""
    lines = ['#include <linux/spindle.h>']
    for struct, members in structures().items():
        lines.append(f'char {struct}[sizeof(struct {struct})];')
        lines += [f'char {struct}__{m}[__builtin_offsetof(struct {struct}, {m}) + 1];'
                  for m in members]
    (where / 'layout.c').write_text('\n'.join(lines) + '\n')
    silent('gcc', f'-m{bits}', '-fno-common', f'-I{PROJECT}/uapi', f'-I{multiarch()}', '-c', '-o',
           f'layout{bits}.o', 'layout.c', cwd=where)
    _, said = run('nm', '-S', '--defined-only', f'layout{bits}.o', cwd=where)
    return {line.split()[3]: int(line.split()[1], 16) for line in said.splitlines()}


def test_uapi_layout_is_the_same_for_32_and_64_bits(tmp_path):
    wide = layout(64, tmp_path)
    assert len(wide) > 20
    assert layout(32, tmp_path) == wide


# Scripts and texts

def test_shellcheck():
    names = scripts_of('(ba|da)?sh')
    assert 'scripts/check' in names
    silent('shellcheck', *names)


def python():
    return sorted({*scripts_of(r'python3?'), *files(r'.*\.py')})


def test_python_compiles():
    for name in python():
        compile(text_of(name), name, 'exec')


def test_pyflakes():
    silent('/usr/bin/python3', '-m', 'pyflakes', *python())


def test_perl_compiles():
    for name in scripts_of('perl'):
        status, said = run('perl', '-wc', name)
        assert status == 0 and said.strip() == f'{name} syntax OK', said


def test_programs_can_be_run():
    """What has an interpreter's name in it is executable, and nothing else."""
    bad = [n for n in tracked()
           if text_of(n).startswith('#!') != os.access(os.path.join(PROJECT, n), os.X_OK)]
    assert not bad, bad


def test_manual():
    silent('mandoc', '-T', 'lint', '-W', 'warning', *files(MANUALS))


def test_manual_in_man_db_too():
    silent('groff', '-man', '-T', 'utf8', '-w', 'w', '-z', *files(MANUALS))


PAGES = files(r'.*\.rst')
PAGE_WIDTH = 100
FIGURES_LINES = 300


@functools.lru_cache(None)
def page_of(name):
    """A page as docutils reads it, and what docutils had to say about it."""
    from docutils import core   # pylint: disable=import-outside-toplevel

    said = io.StringIO()
    tree = core.publish_doctree(text_of(name), source_path=name, settings_overrides={
        '_disable_config': True, 'file_insertion_enabled': False, 'report_level': 2,
        'halt_level': 5, 'warning_stream': said})
    return tree, said.getvalue()


@pytest.mark.parametrize('name', PAGES)
def test_page_parses(name):
    _, said = page_of(name)
    assert not said, said


@pytest.mark.parametrize('name', PAGES)
def test_page_links_to_what_is_there(name):
    targets = [node.get('refuri') or node.get('uri') for node in page_of(name)[0].findall()
               if getattr(node, 'tagname', '') in ('reference', 'image')]
    links = [urllib.parse.urlsplit(target) for target in targets if target]
    local = {urllib.parse.unquote(link.path) for link in links
             if not link.scheme and not link.netloc and link.path}
    here = os.path.join(PROJECT, os.path.dirname(name))
    missing = [path for path in local if not os.path.exists(os.path.join(here, path))]
    # pages that are named without a link, from here or from the top; NAME.rst stands for any
    missing += [path for path in re.findall(r'(?<![\w:/.-])[\w/.-]+\.rst\b', text_of(name))
                if not re.search(r'\b[A-Z]+\.rst$', path) and
                not any(os.path.exists(os.path.join(top, path)) for top in (here, PROJECT))]
    assert not missing, missing


def test_page_width():
    found = [f'{name}:{i}' for name in PAGES
             for i, line in enumerate(text_of(name).splitlines(), 1) if len(line) > PAGE_WIDTH]
    assert not found, found


def test_figures_are_short():
    """Those of a page and its plots; raw runs are not for the repository."""
    lines = {name: len(text_of(name).splitlines())
             for name in files(r'Documentation/benchmarks/.*\.json')}
    assert lines and max(lines.values()) <= FIGURES_LINES, lines


def test_licence_lines():
    bad = [n for n in tracked() if not NO_LICENCE.fullmatch(n) and text_of(n) and
           not re.search(r'SPDX-License-Identifier: \S+', '\n'.join(text_of(n).split('\n', 3)[:3]))]
    assert not bad, bad


def test_no_leftovers():
    """No unfinished work, no path of the machine it was written on."""
    places = [re.escape(PROJECT) + r'\b', r'/home/\w+']
    parent = os.path.dirname(PROJECT)
    # a checkout right below / or a home says nothing about its parent
    if not re.fullmatch(r'/(root|tmp|usr|opt|srv|var|mnt)?|/home(/\w+)?|/usr/src|/var/tmp', parent):
        places.append(r'(?<![\w.$%}])' + re.escape(parent) + '/')
    words = ['TO' + 'DO', 'FIX' + 'ME', 'X' * 3]
    bad = re.compile('|'.join([*places, *(rf'\b{w}\b' for w in words)]))
    # a patch has lines of what it changes
    found = [f'{name}:{i}: {line}' for name in tracked() if name != 'LICENSE' and
             not name.endswith('.patch')
             for i, line in enumerate(text_of(name).splitlines(), 1) if bad.search(line)]
    assert not found, '\n'.join(found)


def test_no_blanks_at_the_ends_of_lines():
    found = [f'{name}:{i}' for name in tracked() if not name.endswith('.patch')
             for i, line in enumerate(text_of(name).split('\n'), 1) if line != line.rstrip()]
    assert not found, found
    assert not [n for n in tracked() if text_of(n) and not text_of(n).endswith('\n')]
