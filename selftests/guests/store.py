#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The example examples/store.py: members that write, die, join and leave, and end alike.

store.py ADDRESS... of this host; it prints what each step came to.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'examples', 'store.py')
ADDRESSES = sys.argv[1:]


class Member:
    """A replica."""

    def __init__(self, node, contact=None):
        self.answers = []
        self.news = threading.Condition()
        command = [sys.executable, '-B', PROGRAM, ADDRESSES[node]]
        if contact is not None:
            command.append(ADDRESSES[contact])
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.program.stdout:
            with self.news:
                self.answers.append(line.decode().strip())
                self.news.notify()
        with self.news:
            self.answers.append(None)
            self.news.notify()

    def say(self, text):
        self.program.stdin.write(text.encode() + b'\n')
        self.program.stdin.flush()

    def ask(self, text):
        self.say(text)
        with self.news:
            self.news.wait_for(lambda: self.answers)
            return self.answers.pop(0)

    def all(self):
        """What it has; None while it is not up to date."""
        answer = self.ask('all')
        return None if answer == 'not up to date' else json.loads(answer)

    def until(self, holds, what):
        """Ask until it is so. A test that waits for ever is ended by who runs this."""
        while not holds(found := self.all()):
            if self.program.poll() is not None:
                sys.exit(f'{what}: the program has ended with {self.program.returncode}')
            time.sleep(0.01)
        print(what, flush=True)
        return found

    def kill(self):
        self.program.kill()
        self.program.wait()

    def quit(self):
        self.say('quit')
        assert self.program.wait() == 0


def alike(members, **last):
    """All have the last write of each, and so everything before it; and all have the same."""
    found = [m.until(lambda data: data and last.items() <= data.items(), f'there is {last}')
             for m in members]
    assert all(f == found[0] for f in found), found
    return found[0]


def main():
    first = Member(0)
    first.until(lambda data: data == {}, 'the first begins with nothing')
    for i in range(300):
        first.say(f'set key{i} {"x" * (1 + i % 400)}')
    second = Member(1, 0)
    second.say('set early yes')
    for i in range(0, 300, 3):
        second.say(f'del key{i}')
    first.say('set first done')
    second.say('set second done')
    found = alike([first, second], first='done', second='done')
    assert found['early'] == 'yes', found
    # the first may have written some of it behind what the second has deleted
    assert {f'key{i}' for i in range(300) if i % 3} <= set(found), sorted(found)
    # the one that is to give it the state does not, and dies: the next one does
    first.program.send_signal(signal.SIGSTOP)
    third = Member(2, 1)
    assert third.all() is None
    first.kill()
    second.say('set second on')
    found['second'] = 'on'
    assert alike([second, third], second='on') == found
    # and who has joined gives it to who joins
    fourth = Member(3, 2)
    second.quit()
    third.say('set third done')
    fourth.say('set fourth done')
    last = {'third': 'done', 'fourth': 'done'}
    assert alike([third, fourth], **last) == {**found, **last}
    assert fourth.ask('get fourth') == 'done'
    assert fourth.ask('get nothing') == ''
    assert fourth.ask('nonsense') == 'what?'
    third.quit()
    fourth.quit()
    print('all replicas alike')


if __name__ == '__main__':
    main()
