# SPDX-License-Identifier: GPL-2.0
"""A replica of examples/store.py in a soak, in a guest: it writes, and joins again when it must.

replica.py TAG OWN-ADDRESS [-] CONTACT...: with "-" it begins the store. On SIGTERM it writes its
last, waits until it has the last of all whose tags stand in $SPINDLE_OUT/store.end, says what it
has as a line of JSON, and ends.
"""

import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, '..', '..', 'examples', 'store.py')
KEYS = 20
JOIN_SECONDS = 2


class Store:
    """The program, as long as it runs."""

    def __init__(self, own, *contact):
        self.answers = queue.SimpleQueue()
        # signals come to both; it is told to end by its command
        self.program = subprocess.Popen(
            ['env', '--ignore-signal=TERM', sys.executable, '-B', PROGRAM, own, *contact],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.program.stdout:
            self.answers.put(line.rstrip('\n'))
        self.answers.put(None)

    def say(self, text):
        """False: it has ended."""
        try:
            self.program.stdin.write(text + '\n')
            self.program.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def ask(self, text, seconds=None):
        """The answer, or None: it has ended, or takes longer than that."""
        if not self.say(text):
            return None
        try:
            return self.answers.get(timeout=seconds)
        except queue.Empty:
            return None


def main():
    tag, own, *contacts = sys.argv[1:]
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    begins = contacts[0] == '-'
    contacts = contacts[begins:]
    k = 0
    for life in itertools.count():
        store = Store(own, *([] if begins and not life else [contacts[life % len(contacts)]]))
        # whom it asks may not be there itself: then another one is asked
        answer = store.ask('get nothing', JOIN_SECONDS)
        while answer == 'not up to date':
            time.sleep(0.05)
            answer = store.ask('get nothing')
        if answer is not None:
            print('view', life, 0, flush=True)
        while answer is not None and not over:
            k += 1
            word = f'del {tag}.{k % KEYS}' if k % 3 == 0 else f'set {tag}.{k % KEYS} {life}.{k}'
            answer = store.ask(f'{word}\nget nothing')
            time.sleep(0.02)
        if answer is not None and store.say(f'set {tag}.last yes'):
            with open(os.path.join(os.environ['SPINDLE_OUT'], 'store.end'), encoding='ascii') as f:
                last = [f'{other}.last' for other in f.read().split()]
            while (answer := store.ask('all')) is not None:
                data = {} if answer == 'not up to date' else json.loads(answer)
                if all(key in data for key in last):
                    print(answer, flush=True)
                    store.say('quit')
                    sys.exit(store.program.wait())
                time.sleep(0.05)
        print('out', flush=True)
        store.program.kill()
        store.program.wait()
        if over:
            sys.exit('it was out at the end')
        time.sleep(0.1)


if __name__ == '__main__':
    main()
