# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Clients that ask for more than they take, for a while or for good."""

import os
import time

import holdfast
import wire
from programs import start_client, wait_until

READS = 3000  # of 4,000 bytes: several times what the ring holds

BUSY = """
import holdfast as torch
a = torch.ones(400, 400)
print("ready", flush=True)
while True:
    b = a @ a  # as many as the ring takes
"""


def ask(daemon):
    """A client that has asked READS times and listened to nothing yet."""
    client = wire.Local(daemon.address("shm").removeprefix("unix:"))
    _, rings = client.open_session()
    spec = wire.pb.TensorSpec(dtype=wire.pb.DTYPE_FLOAT32, shape=[1000])
    put = wire.pb.Put(handle=1, spec=spec, data=bytes(4000))
    commands = [wire.pb.Command(put=put)]
    for i in range(1, READS + 1):
        commands.append(wire.pb.Command(read=wire.pb.Read(id=i, handle=1)))
    batch = wire.pb.Batch(sequence=1, commands=commands)
    rings.write_record(batch.SerializeToString())
    return client, rings


def take_all(rings):
    """Slowly, with the ring full between the looks."""
    ids = []

    def more():
        ids.extend(event.read.id for event in rings.events())
        time.sleep(0.01)
        return len(ids) >= READS

    wait_until(more, "every result")
    return ids


def test_results_wait_for_a_slow_client(daemon):
    client, rings = ask(daemon)
    time.sleep(0.3)
    assert take_all(rings) == list(range(1, READS + 1))
    client.socket.close()


def test_results_come_while_others_have_the_device(daemon):
    busy = start_client(BUSY, daemon.address("shm"))
    try:
        assert busy.stdout.readline() == "ready\n"
        client, rings = ask(daemon)
        assert take_all(rings) == list(range(1, READS + 1))
        client.socket.close()
    finally:
        busy.kill()
        busy.communicate()


def wakings(pid):
    """How often the daemon's threads have gone to sleep."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status") as status:
            for line in status:
                if line.startswith("voluntary_ctxt_switches"):
                    total += int(line.split()[1])
    return total


def test_a_client_that_takes_nothing_costs_nothing(daemon):
    client, rings = ask(daemon)
    time.sleep(1)
    before = wakings(daemon.process.pid)
    time.sleep(2)
    assert wakings(daemon.process.pid) - before < 200
    # Nor is it forgotten.
    assert take_all(rings) == list(range(1, READS + 1))
    client.socket.close()


LEAVE = """
import holdfast as torch
session = torch.connect(session="nine", timeout=600)
a = torch.ones(700, 700)
for _ in range(150):
    b = a @ a
print("leaving", flush=True)
torch.detach()
"""


def test_who_leaves_with_much_to_do_holds_nobody_up(daemon, transport):
    """Neither those who are there nor those who come."""
    leaver = start_client(LEAVE, daemon.address(transport))
    assert leaver.stdout.readline() == "leaving\n"
    looks = 0
    while leaver.poll() is None:
        with holdfast.connect(daemon.address("shm"), default=False) as other:
            holdfast.set_default_session(other)
            assert (holdfast.ones(8) + 1).sum().item() == 16
        looks += 1
    assert leaver.returncode == 0
    # One at most if they waited until it had left.
    assert looks >= 3
