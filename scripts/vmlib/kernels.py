# SPDX-License-Identifier: GPL-2.0
"""The kernels that guests boot: built from Debian's source or taken from its packages."""

import glob
import gzip
import json
import lzma
import os
import re
import subprocess
import time

from . import base
from .base import Error, digest, locked, logged, output, say

CONFIGS = os.path.join(base.SCRIPTS, 'kernels')
# name: (fragments in order, ARCH, make target, image in the build tree)
BUILT = {
    'uml': (['uml'], 'um', 'linux', 'linux'),
    'uml-debug': (['uml', 'uml-debug'], 'um', 'linux', 'linux'),
    'debug': (['debug'], 'x86', 'bzImage', 'arch/x86/boot/bzImage'),
}
# name: the metapackages, and the kbuild package's prefix
DEBIAN = {
    'debian-6.1': ('linux-image-amd64', 'linux-headers-amd64'),
    'debian-6.12': ('linux-image-6.12-amd64', 'linux-headers-6.12-amd64'),
}
# name: the kernel whose guests then share a virtual clock
VIRTUAL = {'virtual': 'uml', 'virtual-debug': 'uml-debug'}
NAMES = [*BUILT, *VIRTUAL, *DEBIAN]
# in the order in which they are applied
PATCHES = ['uml', 'virtual-clock', 'virtual-random', 'virtual-ethernet', 'virtual-channel']
# a build is the same whenever and wherever it is made
REPRODUCIBLE = ['KBUILD_BUILD_TIMESTAMP=1970-01-01', 'KBUILD_BUILD_USER=spindle',
                'KBUILD_BUILD_HOST=spindle', 'KBUILD_BUILD_VERSION=1']
SOURCE = '6.1'
# a change of how a build or an unpacked package is laid out makes new cache entries
RECIPE = '2'


class Kernel:
    """Where the files of one kernel are."""

    def __init__(self, name, where, image, release, kdir, modules):
        self.name = name
        self.dir = where
        self.image = image
        self.release = release
        self.kdir = kdir
        self.modules = modules      # .../lib/modules/RELEASE

    @property
    def built(self):
        """The name of the build that it is."""
        return VIRTUAL.get(self.name, self.name)

    @property
    def virtual(self):
        return self.name in VIRTUAL

    @property
    def uml(self):
        return self.built in BUILT and BUILT[self.built][1] == 'um'

    @property
    def debug(self):
        return self.built in ('uml-debug', 'debug')

    @property
    def kunit(self):
        return self.built in BUILT

    def make_args(self):
        return ['ARCH=um'] if self.uml else []


def load(name, where):
    with open(os.path.join(where, 'kernel.json'), encoding='utf-8') as f:
        facts = json.load(f)
    at = {k: os.path.join(where, facts[k]) for k in ('image', 'kdir', 'modules')}
    return Kernel(name, where, release=facts['release'], **at)


def finish(temp, where, **facts):
    """The last steps of an entry: what says that it is whole, then its name."""
    base.write(os.path.join(temp, 'kernel.json'), json.dumps(facts, indent=1) + '\n')
    os.rename(temp, where)


def ensure(name):
    """The kernel of that name, made if it is not there."""
    if name in VIRTUAL:
        kernel = ensure_built(VIRTUAL[name])
        kernel.name = name
        return kernel
    if name in BUILT:
        return ensure_built(name)
    if name in DEBIAN:
        return ensure_debian(name)
    raise Error(f'no kernel {name!r}; there are {", ".join(NAMES)}')


def entry(name, key):
    where = os.path.join(base.cache_dir(), 'kernels', f'{name}-{key}')
    return where, os.path.join(where, 'kernel.json')


def make_entry(name, key, make):
    """The cache entry; make(temp, where) makes it where there is none."""
    where, done = entry(name, key)
    if not os.path.exists(done):
        with locked(os.path.join(base.cache_dir(), 'kernels', f'{name}.lock'), f'kernel {name}'):
            if not os.path.exists(done):
                temp = os.path.join(os.path.dirname(where), f'.{name}-{key}.tmp')
                # what an interrupted run left may be half written
                base.remove_tree(temp)
                base.remove_tree(where)
                os.makedirs(temp)
                try:
                    make(temp, where)
                except BaseException:
                    base.remove_tree(temp)
                    raise
    return load(name, where)


def fragment(name):
    """The configuration asked for, each option once."""
    options = {}
    for part in BUILT[name][0]:
        for line in base.read(os.path.join(CONFIGS, f'{part}.config')).splitlines():
            match = re.match(r'(?:# )?(CONFIG_\w+)(?:=| is not set)', line)
            if match:
                options[match[1]] = line
    return '\n'.join(options.values()) + '\n'


def source_tree():
    """The unpacked and patched source, one for all builds of its version."""
    package = f'linux-source-{SOURCE}'
    tar = f'/usr/src/{package}.tar.xz'
    if not os.path.exists(tar):
        raise Error(f'no {tar}: run scripts/setup first')
    version = output('dpkg-query', '-W', '-f', '${Version}', package)
    patches = [os.path.join(CONFIGS, f'{name}.patch') for name in PATCHES]
    key = f'{version}-{digest(*map(base.read, patches))}'
    where = os.path.join(base.cache_dir(), 'src', f'linux-{SOURCE}_{key}'.replace('~', '-'))
    if not os.path.exists(where):
        with locked(os.path.join(base.cache_dir(), 'src', 'lock'), 'the kernel source'):
            if not os.path.exists(where):
                temp = where + '.tmp'
                base.remove_tree(temp)
                os.makedirs(temp)
                log = os.path.join(base.cache_dir(), 'src', 'log')
                logged(['tar', '-xf', tar, '-C', temp, '--strip-components=1'], log,
                       f'unpacking {package}')
                for patch in patches:
                    logged(['patch', '-s', '-p1', '-d', temp, '-i', patch], log,
                           f'patching it with {os.path.basename(patch)}')
                os.rename(temp, where)
    return where, key


def compiler():
    return output('gcc', '--version').splitlines()[0]


def jobs():
    return f'-j{len(os.sched_getaffinity(0))}'


def ensure_built(name):
    source, source_key = source_tree()
    config = fragment(name)
    key = digest(source_key, config, compiler(), RECIPE)
    _, arch, target, image = BUILT[name]

    def make(temp, where):
        start = time.monotonic()
        build = os.path.join(temp, 'build')
        log = os.path.join(base.cache_dir(), 'kernels', f'{name}.log')
        wanted = os.path.join(temp, 'fragment.config')
        run = ['make', jobs(), '-C', source, f'O={build}', f'ARCH={arch}',
               *REPRODUCIBLE]
        os.makedirs(build)
        base.write(wanted, config)
        base.write(log, '')
        say(f'building kernel {name} (minutes, once); output in {log}')
        logged([*run, f'KCONFIG_ALLCONFIG={wanted}', 'allnoconfig'], log, f'configuring {name}')
        check_config(config, base.read(os.path.join(build, '.config')))
        logged([*run, target, 'modules'], log, f'building {name}')
        logged([*run, f'INSTALL_MOD_PATH={temp}/modules', 'modules_install'], log,
               f'installing the modules of {name}')
        release = base.read(os.path.join(build, 'include/config/kernel.release')).strip()
        modules = os.path.join('modules', 'lib', 'modules', release)
        for link in ('build', 'source'):
            os.unlink(os.path.join(temp, modules, link))
        os.rename(os.path.join(build, image), os.path.join(temp, 'image'))
        prune(build)
        finish(temp, where, image='image', release=release, kdir='build', modules=modules)
        say(f'kernel {name} built in {time.monotonic() - start:.0f} s')

    return make_entry(name, key, make)


def check_config(wanted, got):
    """Kconfig drops in silence what has an unmet dependency."""
    have = set(got.splitlines())
    lost = [line for line in wanted.splitlines()
            if not line.endswith('=n') and not line.startswith('#') and line not in have]
    if lost:
        raise Error(f'the kernel configuration lost {", ".join(lost)}')


def prune(build):
    """Leave what building a module against the tree needs, not the objects of the kernel."""
    for top, dirs, files in os.walk(build):
        if top == build:
            # host tools, and their objects
            dirs[:] = [d for d in dirs if d not in ('scripts', 'tools')]
        for name in files:
            if name.endswith(('.o', '.a', '.ko', '.cmd', '.mod', '.mod.c')) or \
                    re.match(r'(\.tmp_)?vmlinux|System.map|\.tmp_', name):
                os.unlink(os.path.join(top, name))


def apt_facts(package):
    """Version and dependencies of apt's candidate, or None."""
    done = subprocess.run(['apt-cache', 'show', '--no-all-versions', package], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    facts = dict(re.findall(r'^(Version|Depends): (.*)$', done.stdout, re.M))
    return facts if 'Version' in facts else None


def depends(package, pattern):
    for dep in re.split(r'[,|]\s*', (apt_facts(package) or {}).get('Depends', '')):
        match = re.match(rf'({pattern})(\s|$)', dep.strip())
        if match:
            return match[1]
    raise Error(f'{package} does not depend on {pattern}')


def ensure_debian(name):
    image_meta, headers_meta = DEBIAN[name]
    facts = apt_facts(image_meta)
    if not facts:
        # an older one in the cache is better than none
        for old in sorted(glob.glob(entry(name, '*')[1]), key=os.path.getmtime, reverse=True):
            return load(name, os.path.dirname(old))
        raise Error(f'apt knows no {image_meta}: run scripts/setup first')
    key = f'{facts["Version"]}-{RECIPE}'.replace('~', '-')

    def make(temp, where):
        image = depends(image_meta, r'linux-image-\d\S*')
        headers = depends(headers_meta, r'linux-headers-\d\S*')
        common = depends(headers, r'linux-headers-\S*-common\S*')
        kbuild = depends(headers, r'linux-kbuild-\S*')
        release = image[len('linux-image-'):]
        log = os.path.join(base.cache_dir(), 'kernels', f'{name}.log')
        base.write(log, '')
        debs = os.path.join(temp, 'debs')
        os.makedirs(debs)
        fetch([image, headers, common, kbuild], debs, log)
        for deb in glob.glob(os.path.join(debs, '*.deb')):
            logged(['dpkg-deb', '-x', deb, temp], log, f'unpacking {os.path.basename(deb)}')
        base.remove_tree(debs)
        modules = os.path.join('lib', 'modules', release)
        for link in ('build', 'source'):
            if os.path.lexists(os.path.join(temp, modules, link)):
                os.unlink(os.path.join(temp, modules, link))
        logged(['depmod', '-b', temp, release], log, 'depmod')
        unpack_vmlinux(os.path.join(temp, 'boot', f'vmlinuz-{release}'),
                       os.path.join(temp, 'image'))
        kdir = os.path.join('usr', 'src', headers)
        move_headers(temp, where)
        finish(temp, where, image='image', release=release, kdir=kdir, modules=modules)

    return make_entry(name, key, make)


def fetch(packages, where, log):
    say(f'fetching {" ".join(packages)}')
    try:
        logged(['apt-get', '-q', 'download', *packages], log, 'fetching', cwd=where)
    except Error:
        # the package lists may be older than what the archive keeps
        sudo = [] if os.getuid() == 0 else ['sudo', '-n']
        subprocess.run([*sudo, 'apt-get', '-q', 'update'], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        logged(['apt-get', '-q', 'download', *packages], log, 'fetching', cwd=where)


def move_headers(temp, where):
    """Debian's header trees name each other by absolute path."""
    for path in glob.glob(os.path.join(temp, 'usr/src/*/Makefile')) + \
            glob.glob(os.path.join(temp, 'usr/src/*/.kernelvariables')) + \
            glob.glob(os.path.join(temp, 'usr/lib/linux-kbuild-*/**/Makefile*'), recursive=True):
        if os.path.islink(path):
            continue
        text = base.read(path)
        moved = re.sub(r'(?<![\w$)}])/usr/(src|lib)/linux-', rf'{where}/usr/\1/linux-', text)
        if moved != text:
            base.write(path, moved)
    for path in glob.glob(os.path.join(temp, 'usr/src/*/*')):
        if os.path.islink(path) and os.readlink(path).startswith('/usr/'):
            target = where + os.readlink(path)
            os.unlink(path)
            os.symlink(target, path)


def unpack_vmlinux(bzimage, vmlinux):
    """An ELF kernel starts seconds earlier under emulation than its self-unpacking form."""
    data = base.read(bzimage, True)
    setup = (data[0x1f1] + 1) * 512
    offset = setup + int.from_bytes(data[0x248:0x24c], 'little')
    # the payload ends with its unpacked size
    payload = data[offset:offset + int.from_bytes(data[0x24c:0x250], 'little') - 4]
    if payload.startswith(b'\xfd7zXZ'):
        elf = lzma.decompress(payload)
    elif payload.startswith(b'\x1f\x8b'):
        elf = gzip.decompress(payload)
    elif payload.startswith((b'\x28\xb5\x2f\xfd', b'\x02\x21\x4c\x18')):
        tool = 'zstd' if payload[0] == 0x28 else 'lz4'
        elf = subprocess.run([tool, '-dcq'], input=payload, stdout=subprocess.PIPE,
                             check=True).stdout
    else:
        raise Error(f'{bzimage}: unknown compression')
    with open(vmlinux, 'wb') as f:
        f.write(elf)


def build_module(kernel, kunit=None):
    """Build spindle.ko for the kernel in build/NAME; the path of it."""
    if kunit is None:
        kunit = kernel.kunit
    elif kunit and not kernel.kunit:
        raise Error(f'kernel {kernel.name} has no KUnit')
    where = os.path.join(base.PROJECT, 'build', kernel.built)
    with locked(where + '.lock', f'the module for {kernel.built}'):
        changed = copy_tree(kernel, where)
        result = os.path.join(where, 'spindle.ko')
        stamp = os.path.join(where, '.built')
        state = f'{kernel.dir}\n{kunit}\n'
        if not changed and os.path.exists(result) and os.path.exists(stamp) and \
                base.read(stamp) == state:
            return result
        log = os.path.join(where, 'log')
        base.write(log, '')
        if os.path.exists(stamp):
            os.unlink(stamp)
        logged(['make', jobs(), '-C', kernel.kdir, f'M={where}', *kernel.make_args(),
                *(['CONFIG_SPINDLE_KUNIT=y'] if kunit else []), 'modules'], log,
               f'building the module for {kernel.built}')
        warnings = [line for line in base.read(log).splitlines() if 'warning:' in line.lower()]
        if warnings:
            say('\n'.join(['the compiler warned:', *warnings]))
        base.write(stamp, state)
    return result


def copy_tree(kernel, where):
    """Bring the module's sources to the build directory; whether anything changed."""
    owner = os.path.join(where, '.kernel')
    if os.path.exists(owner) and base.read(owner) != kernel.dir:
        base.remove_tree(where)
    os.makedirs(where, exist_ok=True)
    base.write(owner, kernel.dir)
    wanted = [f for f in ('Kbuild', 'Makefile') if os.path.exists(os.path.join(base.PROJECT, f))]
    if 'Kbuild' not in wanted:
        raise Error('no Kbuild in the project: there is no module to build')
    for part in ('kmod', 'uapi'):
        for top, _, files in os.walk(os.path.join(base.PROJECT, part)):
            at = os.path.relpath(top, base.PROJECT)
            wanted += [os.path.join(at, f) for f in files
                       if f.endswith(('.c', '.h', '.S', '.sh')) or
                       f in ('Kbuild', 'Makefile', 'Kconfig')]
    listing = os.path.join(where, '.copied')
    before = base.read(listing).splitlines() if os.path.exists(listing) else []
    changed = False
    for name in set(before) - set(wanted):
        changed = True
        if os.path.exists(os.path.join(where, name)):
            os.unlink(os.path.join(where, name))
    for name in wanted:
        src, dst = os.path.join(base.PROJECT, name), os.path.join(where, name)
        data = base.read(src, True)
        if os.path.exists(dst) and base.read(dst, True) == data:
            continue
        changed = True
        os.makedirs(os.path.dirname(dst), exist_ok=True)
        with open(dst, 'wb') as f:
            f.write(data)
        os.chmod(dst, os.stat(src).st_mode & 0o777)
    base.write(listing, '\n'.join(wanted) + '\n')
    return changed
