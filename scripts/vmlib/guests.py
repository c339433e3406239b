# SPDX-License-Identifier: GPL-2.0
"""One guest: how it is booted, and the channel to the first process in it."""

import contextlib
import functools
import ipaddress
import lzma
import os
import platform
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse

from . import base
from .base import Error, helper, read

HEAD = struct.Struct('<III')            # length, command, type; see init.c
START, SIGNAL, PARAMS = 1, 2, 3
READY, STDOUT, STDERR, EXIT, FAILED, TAKEN, ASK = 16, 17, 18, 19, 20, 21, 22

MTU = 4300                              # for an RDMA MTU of 4096
SOCKET_BUFFER = 1 << 20
SO_SNDBUFFORCE = 32

# What Debian's kernels need to reach a 9p root and the channel; built in elsewhere.
EARLY = ['virtio_pci', 'virtio_console', 'virtio_net', 'virtio_rng', '9pnet_virtio', '9p',
         'overlay']


def set_send_buffer(sock, size=SOCKET_BUFFER):
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, size)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)


def addresses(rank, nodes, addrs):
    """The addresses of one guest; see README.md."""
    if addrs == 1:
        return [str(ipaddress.ip_address('10.77.0.1') + rank)]
    first = ipaddress.ip_address('10.77.0.0' if nodes == 1 else f'10.77.{rank}.0')
    return [str(first + 1 + i) for i in range(addrs)]


def mac(rank):
    return f'52:54:00:4d:{rank >> 8:02x}:{rank & 255:02x}'


class Guest:
    """A guest process, its channel, its console log."""

    def __init__(self, rank, kernel, module):
        self.rank = rank
        self.kernel = kernel
        self.module = module        # spindle.ko for it, or None
        self.keeper = None
        self.pid = None
        self.channel = None
        self.log = None
        self.ready = False
        self.failed = None          # why it did not get ready
        self.dead = None            # how it ended
        self.why = None             # what the calendar says of that
        self.killed = False         # by Cluster.kill(): its end is no complaint
        self.paused = False
        self.commands = {}
        self.buffer = bytearray()
        self.send_lock = threading.Lock()
        self.unread = 0             # bytes sent that it has not read
        self.read = threading.Condition()

    def took(self, count):
        with self.read:
            self.unread -= count
            self.read.notify_all()

    def frames(self, data):
        """Take bytes from the channel; yield the whole frames."""
        self.buffer += data
        at = 0
        while len(self.buffer) - at >= HEAD.size:
            length, command, kind = HEAD.unpack_from(self.buffer, at)
            if len(self.buffer) - at < HEAD.size + length:
                break
            at += HEAD.size
            yield kind, command, bytes(self.buffer[at:at + length])
            at += length
        del self.buffer[:at]

    def log_text(self):
        return read(self.log, True).decode(errors='replace').replace('\r', '')


def start_payload(argv, env, cwd):
    strings = [cwd, *argv, *(f'{k}={v}' for k, v in env.items())]
    if any('\0' in s for s in strings):
        raise Error('a NUL in a command')
    return struct.pack('<II', len(argv), len(env)) + \
        b''.join(os.fsencode(s) + b'\0' for s in strings)


def hold(argv, life, fds, log, rmdir=None, cwd=None, env=None):
    """Start a process under a keeper; the keeper's Popen and the process's pid."""
    back, pid_w = os.pipe()
    try:
        with open(log, 'ab') as out:
            keeper = subprocess.Popen(
                [helper('keeper'), str(life), str(pid_w), *(['-d', rmdir] if rmdir else []),
                 '--', *argv],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                pass_fds=[life, pid_w, *fds], cwd=cwd, env=env)
    except BaseException:
        os.close(back)
        raise
    finally:
        os.close(pid_w)
    with os.fdopen(back) as f:
        pid = f.readline()
    if not pid:
        raise Error(f'{argv[0]} did not start: {read(log, True).decode(errors="replace")}')
    return keeper, int(pid)


def quote(path):
    return urllib.parse.quote(path, safe='/:,._-+=')


def init_params(cluster, guest):
    """What init.c reads from the kernel's command line."""
    own = addresses(guest.rank, cluster.nodes, cluster.addrs)
    shown = [base.PROJECT, base.cache_dir(), os.getcwd(), *cluster.show]
    # what lies under another one comes with it
    shown = sorted({p for p in map(os.path.realpath, shown)
                    if p.startswith(('/tmp/', '/run/', '/dev/shm/'))})
    shown = [p for p in shown if not any(p.startswith(q + '/') for q in shown)]
    params = [f'spindle.rank={guest.rank}', f'spindle.net={own[0]}/16,{len(own)}',
              f'spindle.out={quote(cluster.out)}',
              f'spindle.modules={quote(guest.kernel.modules)}']
    if cluster.siw:
        params.append('spindle.siw=1')
    if shown:
        params.append(f'spindle.show={quote(":".join(shown))}')
    return params


def kernel_params(cluster, guest):
    # soft-RoCE takes its packets from the atomic reserve, and breaks a connection when it is empty
    params = ['printk.devkmsg=on', 'panic=-1', f'kunit.enable={int(cluster.kunit)}',
              'sysctl.vm.min_free_kbytes=16384']
    # what a kernel takes for a hang is to be one, also where the host gives it little time
    params += ['watchdog_thresh=60', 'rcupdate.rcu_cpu_stall_timeout=300',
               'workqueue.watchdog_thresh=180']
    if guest.kernel.debug:
        params += ['kmemleak=on', 'kasan_multi_shot', 'no_hash_pointers']
    if guest.kernel.built != 'uml':
        params.append('sysctl.kernel.hung_task_timeout_secs=240')
    return params


def uml_argv(cluster, guest, channel, net):
    return [guest.kernel.image, f'mem={cluster.mem or "512M"}',
            'root=/dev/root', 'rootfstype=hostfs', 'rootflags=/', 'ro',
            f'init={helper("init")}',
            'con=null', 'con0=null,fd:1', 'console=tty0', f'ssl0=fd:{channel}',
            f'vec0:transport=fd,fd={net},depth=128,mtu={MTU},mac={mac(guest.rank)}',
            f'uml_dir={cluster.dir}/', f'umid=node{guest.rank}',
            *kernel_params(cluster, guest), *init_params(cluster, guest), *cluster.append.split()]


def virtual_argv(cluster, guest):
    """All on this line decides on the run: no path is there. init.c asks for init_params()."""
    costs = ','.join(str(ns) for ns in cluster.world.costs.values())
    # the place of the host's stack would decide on the size of memory
    return ['setarch', '-R', guest.kernel.image, f'mem={cluster.mem or "512M"}',
            'initrd=initramfs', 'con=null', 'con0=null,fd:1', 'console=tty0',
            f'ttnet={guest.rank},{MTU}', f'ttseed={cluster.seed * 64 + guest.rank}',
            f'ttcost={costs}', f'time-travel=ext:{guest.rank}:calendar',
            'uml_dir=./', f'umid=node{guest.rank}',
            # the seed is all the randomness there is: nobody need wait for more
            'random.trust_cpu=on', 'random.trust_bootloader=on',
            *kernel_params(cluster, guest), *cluster.append.split()]


@functools.cache
def tsc_khz():
    """The rate of the host's time stamp counter."""
    return int(base.output(helper('tsc')))


def qemu_argv(cluster, guest, channel, net):
    kvm = kvm_works(guest.kernel)
    smp = cluster.smp or 2
    if kvm:
        cpu, accel = 'host', 'kvm'
    else:
        # "max" halves the speed of soft-RoCE, but KASAN's shadow wants its page tables
        cpu = 'max,-erms,-fsrm' if guest.kernel.debug else 'qemu64'
        accel = 'tcg,thread=multi'
    # a guest that measures it against a timer of a busy host's is wrong by as much as eight times
    clock = [] if kvm else ['tsc=reliable', f'tsc_early_khz={tsc_khz()}']
    append = ['console=ttyS0', '8250.nr_uarts=1', 'net.ifnames=0', *clock,
              *kernel_params(cluster, guest), *init_params(cluster, guest), cluster.append]
    return ['qemu-system-x86_64', '-M', 'q35,smm=off,sata=off', '-accel', accel, '-cpu', cpu, '-smp', str(smp),
            '-m', cluster.mem or '512M',
            '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot',
            '-kernel', guest.kernel.image, '-initrd', initramfs(cluster, guest.kernel),
            '-append', ' '.join(filter(None, append)),
            '-chardev', f'file,id=console,path={guest.log},append=on',
            '-serial', 'chardev:console',
            '-chardev', f'socket,id=channel,fd={channel}',
            '-device', 'virtio-serial-pci',
            '-device', 'virtserialport,chardev=channel,name=spindle',
            '-device', 'virtio-rng-pci',
            '-fsdev', 'local,id=root,path=/,security_model=none,readonly=on,multidevs=remap',
            '-device', 'virtio-9p-pci,fsdev=root,mount_tag=root',
            '-fsdev', f'local,id=out,path={cluster.out},security_model=none',
            '-device', 'virtio-9p-pci,fsdev=out,mount_tag=out',
            '-netdev', f'dgram,id=net,local.type=fd,local.str={net}',
            '-device', f'virtio-net-pci,netdev=net,mac={mac(guest.rank)},host_mtu={MTU},romfile=']


def cpio_entry(number, name, mode, data=b'', device=(0, 0)):
    """One member of a "newc" archive."""
    raw = name.encode() + b'\0'
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(raw), 0]
    head = b'070701' + b''.join(b'%08X' % f for f in fields)

    def pad(b):
        return b + b'\0' * (-len(b) % 4)
    return pad(head + raw) + pad(data)


def early_modules(kernel):
    """The .ko files for the initramfs in the order in which they load."""
    if kernel.uml:
        return []
    needs = {}
    paths = {}
    for line in read(os.path.join(kernel.modules, 'modules.dep')).splitlines():
        path, _, rest = line.partition(':')
        needs[path] = rest.split()
        paths[re.sub(r'\.ko(\.\w+)?$', '', os.path.basename(path)).replace('-', '_')] = path
    order = []
    for name in EARLY:
        path = paths.get(name)
        # modules.dep lists the last needed first
        for p in [*reversed(needs[path]), path] if path else []:
            if p not in order:
                order.append(p)
    return [os.path.join(kernel.modules, p) for p in order]


def initramfs(cluster, kernel):
    """Where it is for the guests with that kernel; in virtual time the command line has the name."""
    return os.path.join(cluster.dir, 'initramfs' if kernel.virtual else f'initramfs-{kernel.name}')


def make_initramfs(kernel, path):
    entries = [('dev', 0o40755, b'', (0, 0)), ('dev/console', 0o20600, b'', (5, 1)),
               ('modules', 0o40755, b'', (0, 0)), ('proc', 0o40755, b'', (0, 0)),
               ('init', 0o100755, read(helper('init'), True), (0, 0))]
    for i, module in enumerate(early_modules(kernel)):
        data = read(module, True)
        if module.endswith('.xz'):
            data = lzma.decompress(data)
        name = os.path.basename(module).split('.ko')[0]
        entries.append((f'modules/{i:02}-{name}.ko', 0o100644, data, (0, 0)))
    with open(path, 'wb') as f:
        for number, (name, mode, data, device) in enumerate(entries):
            f.write(cpio_entry(number + 1, name, mode, data, device))
        f.write(cpio_entry(0, 'TRAILER!!!', 0))


def kvm_works(kernel):
    """Whether a guest answers under KVM: some hosts take one and then hang. Asked once a boot."""
    if not os.access('/dev/kvm', os.R_OK | os.W_OK) or platform.machine() != 'x86_64':
        return False
    boot = read('/proc/sys/kernel/random/boot_id').strip()
    known = os.path.join(base.cache_dir(), 'kvm')
    with base.locked(known + '.lock', 'the probe for KVM'):
        with contextlib.suppress(OSError, ValueError):
            was, verdict = read(known).split()
            if was == boot:
                return verdict == 'yes'
        verdict = probe_kvm(kernel)
        base.write(known, f'{boot} {"yes" if verdict else "no"}\n')
    base.say(f'KVM {"answers" if verdict else "does not answer: emulating"}')
    return verdict


def probe_kvm(kernel, seconds=10):
    with tempfile.TemporaryDirectory(prefix='spindle-kvm-') as where:
        image = os.path.join(where, 'initramfs')
        log = os.path.join(where, 'log')
        base.write(log, '')
        make_initramfs(kernel, image)
        life_r, life_w = os.pipe()
        try:
            keeper, _ = hold(
                ['qemu-system-x86_64', '-M', 'q35', '-accel', 'kvm', '-cpu', 'host', '-m', '512M',
                 '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot',
                 '-kernel', kernel.image, '-initrd', image,
                 '-append', 'console=ttyS0 quiet panic=-1 spindle.mode=hello',
                 '-chardev', f'file,id=console,path={log}', '-serial', 'chardev:console'],
                life_r, [], os.path.join(where, 'qemu'))
            end = time.monotonic() + seconds
            answered = False
            while time.monotonic() < end and keeper.poll() is None and not answered:
                time.sleep(0.05)
                answered = b'spindle: hello' in read(log, True)
            answered = answered or b'spindle: hello' in read(log, True)
        finally:
            os.close(life_w)
            os.close(life_r)
        keeper.wait(10)
        return answered


def boot(cluster, guest, net, life):
    """Start the guest; its end of the wire is closed here then."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    set_send_buffer(net)
    # UML's line is polled, and a blocking one would stop the whole guest
    theirs.setblocking(False)
    net.setblocking(False)
    argv = (uml_argv if guest.kernel.uml else qemu_argv)(cluster, guest, theirs.fileno(),
                                                         net.fileno())
    with theirs, net:
        guest.keeper, guest.pid = hold(argv, life, [theirs.fileno(), net.fileno()], guest.log)
    guest.channel = ours
    set_send_buffer(ours)


def boot_virtual(cluster, guest, life):
    """Start a guest that talks to the calendar alone."""
    env = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': '/', 'TERM': 'linux'}
    guest.keeper, guest.pid = hold(virtual_argv(cluster, guest), life, [], guest.log,
                                   cwd=cluster.dir, env=env)


def signal_pid(pid, sig):
    """To the guest's own process; the keeper waits for it, so the pid is not another's."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)


def status_of(word):
    """A wait status as subprocess has it: the exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(word)


def signal_payload(sig):
    return struct.pack('<I', int(signal.Signals(sig)))
