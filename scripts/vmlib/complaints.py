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


def find(lines, kernel, allow=(), kunit=False):
    """The complaining lines, as (index, line); allow has further (pattern, reason) pairs."""
    allowed = [re.compile(pattern) for kernels, pattern, _ in KNOWN if re.search(kernels, kernel)]
    allowed += [re.compile(pattern) for pattern, _ in allow]
    found = []
    for i, line in enumerate(lines):
        # the command line repeats whatever it was given
        if 'ommand line: ' in line or 'Unknown kernel command line' in line:
            continue
        if not COMPLAINT.search(line) and not (kunit and KUNIT_FAILURE.search(line)):
            continue
        if not any(a.search(line) for a in allowed):
            found.append((i, line))
    return found


def excerpt(lines, found, most=60):
    """The complaints with what follows them, each line once, bounded."""
    wanted = sorted({j for i, _ in found for j in range(max(0, i - 1), min(len(lines), i + 16))})
    text = [lines[i] for i in wanted[:most]]
    if len(wanted) > most:
        text.append(f'... and {len(wanted) - most} lines more')
    return '\n'.join(text)
