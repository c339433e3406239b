# SPDX-License-Identifier: GPL-2.0
"""Errors, paths and small tools that the other parts of the harness share."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

VMLIB = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.dirname(VMLIB)
PROJECT = os.path.dirname(SCRIPTS)


class Error(Exception):
    """Something the harness was asked for did not work."""


class GuestDied(Error):
    """The guest a command was to run in is gone."""


class Timeout(Error):
    """A bounded wait came to its bound."""


class KernelComplaint(Error):
    """A guest's kernel reported something that a test must not cause."""


def cache_dir():
    base = os.environ.get('SPINDLE_CACHE')
    if not base:
        base = os.path.join(os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'),
                            'spindle')
    os.makedirs(base, exist_ok=True)
    return os.path.realpath(base)


def runs_dir():
    """Where every running cluster of this user has its directory."""
    return os.path.join(os.path.realpath(tempfile.gettempdir()), f'spindle-vm-{os.getuid()}')


def digest(*parts):
    h = hashlib.sha256()
    for part in parts:
        h.update(part if isinstance(part, bytes) else part.encode())
        h.update(b'\0')
    return h.hexdigest()[:12]


def read(path, binary=False):
    with open(path, 'rb' if binary else 'r', **({} if binary else {'encoding': 'utf-8'})) as f:
        return f.read()


def write(path, text):
    """Write a file whole or not at all."""
    temp = f'{path}.{os.getpid()}.tmp'
    with open(temp, 'w', encoding='utf-8') as f:
        f.write(text)
    os.replace(temp, path)


def say(text):
    print(f'vm: {text}', file=sys.stderr, flush=True)


def output(*argv, **kwargs):
    """The output of a command that must work."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, check=False, **kwargs)
    if done.returncode:
        raise Error(f'{" ".join(argv)}: {done.stderr.strip() or done.returncode}')
    return done.stdout


@contextlib.contextmanager
def locked(path, what):
    """Hold an flock; say so when another holds it for a while."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'a', encoding='utf-8') as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f'waiting for another run that makes {what}')
            fcntl.flock(f, fcntl.LOCK_EX)
        yield


def logged(argv, log, what, cwd=None, quiet=False):
    """Run a long command with its output in a log file, a line of progress every few seconds."""
    start = shown = time.monotonic()
    env = dict(os.environ, LC_ALL='C')
    # an outer make's job server and flags are not for this one
    for name in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL', 'ARCH', 'KBUILD_OUTPUT'):
        env.pop(name, None)
    with open(log, 'ab') as out:
        with subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, cwd=cwd, env=env,
                              stdin=subprocess.DEVNULL) as p:
            try:
                while True:
                    try:
                        status = p.wait(0.2)
                        break
                    except subprocess.TimeoutExpired:
                        pass
                    now = time.monotonic()
                    if now - shown >= 5 and not quiet:
                        shown = now
                        say(f'{what}: {now - start:.0f} s, {last_line(log)}')
            except BaseException:
                p.terminate()
                raise
    if status:
        tail = '\n'.join(read(log, True).decode(errors='replace').splitlines()[-30:])
        raise Error(f'{what} failed; the end of {log}:\n{tail}')


def make(part):
    """Build what a directory of the project is for; one at a time, for tests run side by side."""
    with locked(os.path.join(PROJECT, 'build', 'make.lock'), part):
        done = subprocess.run(['make', '-s', '-C', os.path.join(PROJECT, part)], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise Error(f'make -C {part}:\n{done.stdout}')


def last_line(path):
    with open(path, 'rb') as f:
        f.seek(max(0, os.path.getsize(path) - 300))
        lines = f.read().decode(errors='replace').split('\n')
    return ' '.join(lines[-2].split())[:70] if len(lines) > 1 else ''


def helper(name):
    """One of the C programs here, compiled on first use."""
    source = os.path.join(VMLIB, f'{name}.c')
    flags = ['-O2', '-Wall', '-Wextra', '-static']
    key = digest(read(source, True), ' '.join(flags))
    path = os.path.join(cache_dir(), 'helpers', f'{name}-{key}')
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temp = f'{path}.{os.getpid()}.tmp'
        try:
            output('gcc', *flags, '-o', temp, source)
            os.replace(temp, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temp)
    return path


def remove_tree(path):
    shutil.rmtree(path, ignore_errors=True)
