# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The honest users of ./dev soak --sessions, a process each:

    soak_programs.py KIND NAME ADDRESS LOG SEED [OPTION...]

It prints "ready", works until its input ends, checks what it must find, and writes
into LOG (soak_log.py). HOLDFAST_TOKEN says who it is.
"""

import collections
import contextlib
import hashlib
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback

from proxy import Proxy
from soak_log import Log

import holdfast as torch

STEPS = 100


def over(seconds=0.0):
    """Whether the input has ended, by that many seconds from now."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])


class Program:
    def __init__(self, name, address, log, seed, options):
        self.name, self.address, self.options = name, address, options
        self.log = Log(log)
        self.random = random.Random(f"{seed} {name}")

    def connect(self, **options):
        with self.log.timed("connect"):
            return torch.connect(self.address, timeout=60, **options)

    def probe(self, x):
        """An op and its read, with nothing of one's own before it."""
        torch.synchronize()
        with self.log.timed("op and read"):
            got = (x + 1).sum().item()
        self.log.check(got == 2 * x.numel(), f"ones plus one make {got}")


# ---- trainers: the same weights, bit by bit, whoever is beside them


def train(after_step):
    torch.manual_seed(3)
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(32, 64), nn.Tanh(), nn.Dropout(0.3), nn.Linear(64, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.rand(64, 32), torch.randint(0, 10, (64,))
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        after_step(step, loss)
    digest = hashlib.sha256()
    for p in model.state_dict().values():
        digest.update(p.numpy().tobytes())
    return digest.hexdigest()


def trainer(program):
    """OPTION: the digest that it must come to, and seconds of pause."""
    expected, pause = program.options[0], float(program.options[1])
    program.connect(grace=120, reconnect_timeout=120)
    ones = torch.ones(16)
    print("ready", flush=True)

    def after_step(step, loss):
        if step % 10 == 0:
            loss.item()
            program.probe(ones)
        time.sleep(pause)

    while not over():
        digest = train(after_step)
        program.log.check(digest == expected, f"weights {digest}, not {expected}")
        program.log.count("trainings, bit-identical")


def reference(program):
    program.connect()
    print(train(lambda step, loss: None))


# ---- laptops: trainers behind a network, which sleep now and then

# Until a client that wakes has found out what became of its connection, seconds.
SLEEPS = {"nothing": 1, "cut": 10, "forget": 60}


def laptop(program):
    proxy = Proxy(program.address)
    log = f"{program.options[2]}/{program.name}-awake.log"
    # Its own work goes on in a process that can be stopped.
    arguments = ["trainer", program.name, proxy.address, log, "0"]
    child = subprocess.Popen(
        [sys.executable, __file__, *arguments, *program.options[:2]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    if child.stdout.readline() != "ready\n":
        raise RuntimeError("its program did not start")
    print("ready", flush=True)
    while not over(program.random.uniform(5, 15)) and child.poll() is None:
        what = program.random.choices(list(SLEEPS), (4, 4, 1))[0]
        begin = time.monotonic()
        os.kill(child.pid, signal.SIGSTOP)
        if what != "nothing":
            getattr(proxy, what)()
        over(program.random.uniform(0.5, 5))
        os.kill(child.pid, signal.SIGCONT)
        end = time.monotonic() + SLEEPS[what]
        program.log.write(f"time {begin:.4f} {end:.4f} 0 asleep")
        program.log.count(f"sleeps, the connection then: {what}")
        over(SLEEPS[what])
    child.stdin.close()
    status = child.wait(300)
    program.log.check(status == 0, f"its program ended with {status}")
    proxy.close()


# ---- leavers and notebooks: a program after the other, in one session


def lives(program, life):
    """Forks programs that go on with the session, however the last one ended. What
    one of them said last, the next must find."""
    print("ready", flush=True)
    said = None
    while not over(program.random.uniform(1, 3)):
        said = one_life(program, life, said, program.random.randrange(1 << 30))
    one_life(program, last_look, said, 0)


def one_life(program, life, said, seed):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            program.random = random.Random(seed)
            life(program, said, lambda n: os.write(write, b"%d\n" % n))
            os._exit(0)
        except BaseException:
            program.log.fail(traceback.format_exc(limit=-3))
            os._exit(1)
    os.close(write)
    with os.fdopen(read) as pipe:
        words = pipe.read().split()
    os.waitpid(pid, 0)
    return int(words[-1]) if words else said


def go_on(program, said):
    """The session and its number, which must be the one that was said last."""
    session = program.connect(session=program.name, grace=600)
    if not session.attached:
        program.log.check(said is None, f"the session that kept {said} is gone")
        torch.keep("x", torch.zeros(1000))
        torch.keep("more", {"w": torch.ones(50, 50), "note": program.name})
        torch.synchronize()
        return session, torch.kept("x"), 0
    x = torch.kept("x")
    values = x.numpy()
    right = (values == values[0]).all() and (said is None or values[0] == said)
    program.log.check(right, f"kept {values[:3]}..., not {said}")
    more = torch.kept("more")
    right = more["note"] == program.name and more["w"].sum().item() == 2500
    program.log.check(right, "what was kept beside it")
    program.log.count("sessions continued, their tensors right")
    return session, x, int(values[0])


def leave(program, session):
    """Politely, without a word, or dead in the middle of more work."""
    way = program.random.choice(("detach", "exit", "kill"))
    if way == "detach":
        with program.log.timed("detach"):
            session.close(keep=True)
    elif way == "kill":
        torch.rand(64, 64).mm(torch.rand(64, 64)).sum()
        os.kill(os.getpid(), signal.SIGKILL)


def leaver(program, said, say):
    session, x, value = go_on(program, said)
    for _ in range(program.random.randint(1, 6)):
        adds = program.random.randint(1, 30)
        for _ in range(adds):
            x.add_(1)
        torch.synchronize()
        value += adds
        say(value)
        program.probe(torch.ones(16))
        time.sleep(program.random.uniform(0, 1))
    leave(program, session)


def notebook(program, said, say):
    """Cells with pauses between them; results of some are kept for a while."""
    session, x, value = go_on(program, said)
    a = torch.rand(256, 256)
    torch.synchronize()  # or the first cancel calls it back
    results = []
    for _ in range(program.random.randint(5, 25)):
        cell = program.random.choice(("look", "look", "ahead", "cancel", "keep"))
        if cell == "ahead":
            results.append([(a @ a).sum() for _ in range(20)][-1])
            first, last = results[0].item(), results[-1].item()
            program.log.check(first == last, f"one product, {first} and {last}")
        elif cell == "cancel":
            for _ in range(60):
                a @ a
            torch.cancel()
            program.log.count("cancels")
        elif cell == "keep":
            x.add_(1)
            torch.synchronize()
            value += 1
            say(value)
        del results[:-5]
        program.probe(torch.ones(16))
        time.sleep(min(3, program.random.expovariate(2)))
    leave(program, session)


def last_look(program, said, say):
    session, _, _ = go_on(program, said)
    session.close()


# ---- readers, of names that others publish


def publisher(program):
    program.connect(grace=120)
    number = 0
    while not over(program.random.uniform(0.2, 2) if number else 0):
        number += 1
        size = program.random.choice((1000, 50_000, 500_000))
        v = torch.full((size,), float(number))
        torch.synchronize()
        with program.log.timed("publish"):
            torch.publish("weights", {"v": v, "n": number}, readers="all")
        found = torch.lookup("weights")
        program.log.check(found["n"] == number, f"published {number}: {found['n']}")
        program.log.count("versions published")
        program.probe(torch.ones(16))
        if number == 1:
            print("ready", flush=True)
    torch.unpublish("weights")


def reader(program):
    """OPTION...: the owners of the names."""
    program.connect(grace=120)
    held, last = collections.deque(maxlen=4), collections.Counter()
    large = torch.arange(1_000_000).reshape(1000, 1000)
    sums = large.sum(1).tolist()
    print("ready", flush=True)
    while not over(program.random.uniform(0.05, 0.5)):
        owner = program.random.choice(program.options)
        with program.log.timed("lookup"):
            try:
                found = torch.lookup("weights", owner=owner)
            except LookupError:
                continue  # the publisher has ended
        n = found["n"]
        program.log.check(n >= last[owner], f"version {n} after {last[owner]}")
        last[owner] = n
        held.append(found)
        version = held[program.random.randrange(len(held))]
        values = version["v"].numpy()
        program.log.check((values == version["n"]).all(), f"{values} in version {n}")
        program.log.count("published versions read, right")
        if program.random.random() < 0.1:
            right = large.numpy().sum(1).tolist() == sums
            program.log.check(right, "a large read")
            program.log.count("large reads, right")
        program.probe(torch.ones(16))


def unpublish(program):
    """What an attacker left under names stays its user's until somebody does this."""
    program.connect()
    for one in torch.published():
        if one.owner == program.name:
            torch.unpublish(one.name)


ONE_PROCESS = {
    "trainer": trainer,
    "laptop": laptop,
    "publisher": publisher,
    "reader": reader,
    "reference": reference,
    "unpublish": unpublish,
}
MANY = {"leaver": leaver, "notebook": notebook}


def main():
    kind, name, address, log, seed, *options = sys.argv[1:]
    program = Program(name, address, log, seed, options)
    try:
        if kind in MANY:
            lives(program, MANY[kind])
        else:
            ONE_PROCESS[kind](program)
    except BaseException:
        program.log.fail(traceback.format_exc(limit=-3))
        raise
    finally:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.flush()


if __name__ == "__main__":
    main()
