# SPDX-License-Identifier: GPL-2.0
"""What the members of a soak wrote down, and whether it can be.

Each program (selftests/socket/soak_member.c) has a file, in which each of its lives, one
membership after another, tells of the views and messages that it read.
"""

import collections
import itertools


class Violation(Exception):
    """Something that the group promises does not hold."""


class Life:
    """One membership of one program."""

    def __init__(self, tag, number):
        self.tag = tag
        self.number = number
        self.uid = None
        self.views = {}                 # number: (members {uid: address}, gone {uid: reason})
        self.read = {}                  # view: [(seq, tag, life, k)]
        self.sent = 0                   # so many at least, all of them once it has ended
        self.end = None                 # 'end', or the error with which the group failed

    def __str__(self):
        return f'program {self.tag}, life {self.number}'

    @property
    def last(self):
        """The last view that it read of."""
        return max(self.views, default=0)

    def completed(self, view):
        """Did it read all that belongs to the view?"""
        return view < self.last or view == self.last and self.end == 'end'

    def took(self, words):
        kind = words[0]
        if kind == 'm':
            self.read[self.last].append(tuple(map(int, words[1:])))
        elif kind == 's':
            self.sent = int(words[2])
        elif kind == 'view':
            bar = words.index('|')
            members = dict(word.split('@') for word in words[3:bar])
            own = [uid for uid, address in members.items() if address.endswith('+')]
            if len(own) != 1 or self.uid not in (None, own[0]):
                raise Violation(f'{self}: it was {self.uid}, and is {own} in view {words[1]}')
            self.uid = own[0]
            gone = dict(word.split(':') for word in words[bar + 1:])
            members = {uid: address.rstrip('+') for uid, address in members.items()}
            self.views[int(words[1])] = ((int(words[2]), members), gone)
            self.read[int(words[1])] = []
        else:
            self.end = 'end' if kind == 'end' else words[1]
            self.sent = int(words[-1])


# Words of each kind of line; of views as many as there are members.
WORDS = {'m': 5, 's': 3, 'end': 2, 'failed': 3, 'life': 2, 'view': None}


def lives_of(path, tag, whole):
    """The lives of a program. If it was killed with its guest, its last words may be missing."""
    with open(path, 'rb') as f:
        data = f.read()
    # what never left a guest that was killed reads as zeros
    lines = data.partition(b'\0')[0].decode().split('\n')
    torn = lines.pop() or len(data) != len(data.partition(b'\0')[0])
    if torn and whole:
        raise Violation(f'program {tag}: its record is torn')
    found = []
    for line in lines:
        words = line.split() or ['']
        if WORDS.get(words[0], 0) not in (None, len(words)):
            raise Violation(f'program {tag}: its record has a line {line!r}')
        if words[0] == 'life':
            found.append(Life(tag, int(words[1])))
        elif found:
            found[-1].took(words)
    return found


class Order:
    """The one order of a group, put together from all that was read."""

    def __init__(self, lives):
        self.lives = lives
        self.views = {}                 # number: what all say of it
        self.gone = {}                  # uid: (view, reason)
        self.messages = collections.defaultdict(list)
        for life in lives:
            self.check_views(life)
        for view in sorted(self.views):
            self.check_messages(view)
        self.check_senders()

    @property
    def last(self):
        return max(self.views, default=0)

    def check_views(self, life):
        if list(life.views) != list(range(life.last - len(life.views) + 1, life.last + 1)):
            raise Violation(f'{life}: its views are {list(life.views)}')
        for i, (number, (said, gone)) in enumerate(life.views.items()):
            if self.views.setdefault(number, said) != said:
                raise Violation(f'{life}: view {number} is {said}, for others {self.views[number]}')
            # who joins is told who is there, not who has gone
            for uid, why in gone.items() if i else ():
                if self.gone.setdefault(uid, (number, why)) != (number, why):
                    raise Violation(f'{life}: {uid} went in view {number}, {why}; for others '
                                    f'in {self.gone[uid]}')

    def check_messages(self, view):
        """All that went on have read the same in a view, and all others how it begins."""
        there = [life for life in self.lives if view in life.views]
        there.sort(key=lambda life: (life.completed(view), len(life.read[view])))
        most = there[-1]
        for life in there:
            read = life.read[view]
            for n, (mine, other) in enumerate(zip(read, most.read[view])):
                if mine != other:
                    raise Violation(f'view {view}, message {n}: {life} read {mine}, '
                                    f'{most} read {other}')
            if len(read) > len(most.read[view]) or \
                    life.completed(view) and len(read) != len(most.read[view]):
                raise Violation(f'view {view}: {life} read {len(read)} messages, '
                                f'{most} {len(most.read[view])}')
        self.messages[view] = most.read[view]

    def check_senders(self):
        """Of each sender each message once, in its order; and all, unless its host was lost."""
        count = collections.Counter()
        seq = -1
        for number, tag, life, k in itertools.chain.from_iterable(
                self.messages[view] for view in sorted(self.messages)):
            count[tag, life] += 1
            if count[tag, life] != k:
                raise Violation(f'message {k} of program {tag}, life {life}, where '
                                f'{count[tag, life]} is to be')
            if number <= seq:
                raise Violation(f'message {k} of program {tag}, life {life}: its place is '
                                f'{number}, behind {seq}')
            seq = number
        for life in self.lives:
            came = count.pop((life.tag, life.number), 0)
            lost = life.end not in (None, 'end') or \
                life.end is None and self.gone.get(life.uid, (0, 'lost'))[1] == 'lost'
            if came < life.sent and not lost:
                raise Violation(f'{life}: {came} messages of {life.sent} came, '
                                f'though it was not lost: {self.gone.get(life.uid)}')
            if life.end == 'end' and came != life.sent:
                raise Violation(f'{life}: it has sent {life.sent}, and {came} came')

    def total(self):
        return sum(map(len, self.messages.values()))
