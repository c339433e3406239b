# SPDX-License-Identifier: GPL-2.0
"""What in a kernel log fails a run."""

import re

COMPLAINT = re.compile('|'.join([
    r'\bBUG\b', r'\bWARNING\b', r'\bOops\b', r'Kernel panic', r'kernel panic',
    r'possible (circular|recursive) locking', r'possible irq lock inversion',
    r'inconsistent lock state', r'suspicious RCU usage', r'sleeping function called',
    r'scheduling while atomic', r'bad unlock balance', r'DEBUG_LOCKS_WARN_ON', r'lock held when',
    r'lock inversion', r'turning off the locking correctness validator',
    r'MAX_LOCK(DEP_\w+|_DEPTH) too low',
    r'\bKASAN\b: (?!initiali[sz]ed|KernelAddressSanitizer)', r'KernelAddressSanitizer: ',
    r'\bUBSAN\b: ', r'\bKFENCE\b: (?!initialized)',
    r'unreferenced object', r'\bhung task\b', r'blocked for more than', r'cleanup failed',
    r'soft lockup', r'hard LOCKUP', r'workqueue lockup', r'rcu: INFO: ', r'self-detected stall',
    r'refcount_t', r'general protection', r'unable to handle', r'Unable to handle',
    r'invalid opcode', r'stack segment', r'double fault', r'Call Trace', r'list_(add|del) corruption',
    r'\bODEBUG\b: (?!selftest|Out of memory)', r'DMA-API', r'unregister_netdevice: waiting',
    r'failed to dealloc', r'page allocation failure', r'Out of memory', r'Bad page',
    r'still has locks held', r'new suspected memory leak', r'Objects remaining',
]))

# KUnit's verdicts, looked for where the suites were asked to run.
KUNIT_FAILURE = re.compile(r'^(\[ *[\d.]+\] )?\s*not ok \d+')

# Noise of stock kernels: (which kernels, pattern, why it is none of ours)
KNOWN = [
]


# Reports of data races that are none of the module's although it has a part in them:
# (pattern for the title, why)
RACES = [
]

RULE = re.compile(r'={60,}$')
ACCESS = re.compile(r'\b(read|write|read-write|assert no \w+)( \(\w+\))?( \(\w+, \w+\))? to 0x')
FRAME = re.compile(r'\] +(\S+)\+0x[0-9a-f]+/0x[0-9a-f]+( \[(\w+)\])?')
NEAR = 3                # frames from an access to who is answerable for it


def ours(report):
    """Is one of the two accesses the module's, or that of a helper which it called?

    Strict rules find races all over the kernel, of which soft-RoCE has its own; what
    counts is the first module on the stack, near the access.
    """
    if any(re.search(pattern, report[0]) for pattern, _ in RACES):
        return False
    depth, known = 0, False
    for line in report:
        if ACCESS.search(line):
            depth, known = 0, False
        match = FRAME.search(line)
        if not match:
            continue
        depth += 1
        if depth <= NEAR and not known and match[3]:
            known = True
            if match[3] == 'spindle':
                return True
        # what an interrupt came upon has no part in it
        if match[1].startswith('asm_'):
            known = True
    return False


def foreign_races(lines):
    """The indices of lines of KCSAN's reports that do not concern the module."""
    found, i = set(), 0
    while i < len(lines):
        if 'BUG: KCSAN: ' not in lines[i]:
            i += 1
            continue
        end = next((j for j in range(i + 1, len(lines)) if RULE.search(lines[j])), len(lines))
        if not ours(lines[i:end]):
            found.update(range(i, end))
        i = end
    return found


def find(lines, kernel, allow=(), kunit=False):
    """The complaining lines, as (index, line); allow has further (pattern, reason) pairs."""
    allowed = [re.compile(pattern) for kernels, pattern, _ in KNOWN if re.search(kernels, kernel)]
    allowed += [re.compile(pattern) for pattern, _ in allow]
    found, foreign = [], foreign_races(lines)
    for i, line in enumerate(lines):
        if i in foreign:
            continue
        # the command line repeats whatever it was given
        if 'ommand line: ' in line or 'Unknown kernel command line' in line:
            continue
        if not COMPLAINT.search(line) and not (kunit and KUNIT_FAILURE.search(line)):
            continue
        if not any(a.search(line) for a in allowed):
            found.append((i, line))
    return found


def excerpt(lines, found, most=160):
    """The complaints with what follows them, each line once, bounded."""
    wanted = sorted({j for i, _ in found for j in range(max(0, i - 1), min(len(lines), i + 64))})
    text = [lines[i] for i in wanted[:most]]
    if len(wanted) > most:
        text.append(f'... and {len(wanted) - most} lines more')
    return '\n'.join(text)
