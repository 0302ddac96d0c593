# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""%holdfast session and restore: a notebook's names outlive its kernel."""

import os
import signal
import time

import pytest
from service_environment import Person

manager = pytest.importorskip("jupyter_client.manager")
pytest.importorskip("ipykernel", reason="python3-ipykernel is not installed")


@pytest.fixture
def person():
    someone = Person()
    yield someone
    someone.holdfast("stop", "--force")
    someone.leave()


class Notebook:
    """A kernel that can be killed or restarted, and what its cells print."""

    def __init__(self, person, **env):
        self._manager, self._client = manager.start_new_kernel(
            env={**person.env, **env}
        )

    def run(self, code):
        """A cell's output; AssertionError: it failed."""
        printed = []

        def hook(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                printed.append(content["text"])
            elif message["msg_type"] == "execute_result":
                printed.append(content["data"]["text/plain"])

        reply = self._client.execute_interactive(code, timeout=90, output_hook=hook)
        assert reply["content"]["status"] == "ok", reply["content"]
        return "".join(printed)

    def begin(self, code):
        """A cell that is not waited for."""
        self._client.execute(code)

    def kill(self):
        os.kill(self._manager.provisioner.process.pid, signal.SIGKILL)
        self.end()

    def end(self):
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


IMPORTS = """
%load_ext holdfast
import holdfast as torch
from holdfast import nn
"""
TRAINING = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(opt, 5)
x, y = torch.randn(16, 4), torch.randn(16, 1)
def train(steps):
    for _ in range(steps):
        opt.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        opt.step()
        schedule.step()
"""
TRAIN = "def train(" + TRAINING.partition("def train(")[2]
SUMS = """
sums = [p.double().sum().item() for p in model.parameters()]
print(sums, opt.param_groups[0]["lr"])
"""
SHARED = """
pairs = zip(opt.param_groups[0]["params"], model.parameters())
print(all(a is b for a, b in pairs))
"""


def expected(person):
    """What 20 steps in one kernel come to."""
    notebook = Notebook(person)
    notebook.run(IMPORTS + TRAINING + "train(20)")
    result = notebook.run(SUMS)
    notebook.end()
    return result


def test_a_training_goes_on_in_the_next_kernel(person):
    whole = expected(person)
    notebook = Notebook(person)
    said = notebook.run(IMPORTS + "%holdfast session mnist")
    assert "session 'mnist' keeps what this notebook makes" in said
    assert "your daemon is started" in said
    notebook.run(TRAINING)
    notebook.run("train(12)")
    notebook.run("lost = 1; _hidden = torch.ones(1)")
    notebook.kill()

    notebook = Notebook(person)
    said = notebook.run(IMPORTS + "%holdfast session mnist")
    assert "has model, opt, schedule, x, y of an earlier kernel" in said
    assert "back are model, opt, schedule, x, y" in notebook.run("%holdfast restore")
    assert notebook.run("print('lost' in dir(), '_hidden' in dir())") == "False False\n"
    # The optimizer's parameters are the model's.
    assert notebook.run(SHARED) == "True\n"
    notebook.run(TRAIN + "train(8)")
    assert notebook.run(SUMS) == whole
    # And once more: what was restored is kept.
    notebook.kill()
    notebook = Notebook(person)
    notebook.run(IMPORTS + "%holdfast session mnist\n%holdfast restore")
    assert notebook.run(SUMS) == whole
    notebook.end()


LONG = """
import time
w = torch.zeros(3)
for _ in range(600):
    w += 1
    time.sleep(0.1)
"""


def test_what_a_long_cell_makes_is_kept_while_it_runs(person):
    notebook = Notebook(person)
    notebook.run(IMPORTS + "%holdfast session long")
    notebook.begin(LONG)
    time.sleep(4)
    notebook.kill()
    notebook = Notebook(person)
    notebook.run(IMPORTS + "%holdfast session long\n%holdfast restore")
    steps = float(notebook.run("print(w[0].item())"))
    assert 15 < steps < 100  # those of after it was kept, too
    notebook.end()


def test_classes_of_the_notebooks_own(person):
    net = "class Net(nn.Linear):\n    def double(self, x): return 2 * self(x)\n"
    notebook = Notebook(person)
    notebook.run(IMPORTS + "%holdfast session own")
    notebook.run(net + "net = Net(2, 1); t = torch.arange(3)")
    value = notebook.run("print(net.double(torch.ones(2)).item())")
    notebook.kill()
    notebook = Notebook(person)
    notebook.run(IMPORTS + "%holdfast session own")
    said = notebook.run("%holdfast restore")
    assert "back are t\n" in said and "net waits for the class Net" in said
    notebook.run(net)
    assert "back are net, t" in notebook.run("%holdfast restore")
    assert notebook.run("print(net.double(torch.ones(2)).item())") == value
    # A name that is deleted, or is something else by now, is not kept.
    notebook.run("del t; net = 3; z = torch.ones(1)")
    notebook.kill()
    notebook = Notebook(person)
    said = notebook.run(IMPORTS + "%holdfast session own")
    assert "has z of an earlier kernel" in said
    notebook.end()


def test_what_cannot_be_kept_is_told_once(person):
    notebook = Notebook(person)
    notebook.run(IMPORTS + "%holdfast session odd")
    cell = "m = nn.Linear(1, 1); m.hook = lambda: 0; t = torch.ones(2)"
    assert "holdfast: m is not kept: " in notebook.run(cell)
    assert "not kept" not in notebook.run("1")
    notebook.kill()
    notebook = Notebook(person)
    said = notebook.run(IMPORTS + "%holdfast session odd")
    assert "has t of an earlier kernel" in said
    notebook.end()


def test_the_notebooks_name(person):
    unnamed = Notebook(person, JPY_SESSION_NAME="")
    said = unnamed.run(IMPORTS + "%holdfast session")
    assert "%holdfast session NAME" in said
    said = unnamed.run("%holdfast restore")
    assert "%holdfast session NAME comes first" in said
    unnamed.end()
    path = os.path.expanduser("~/work/digits.ipynb")
    named = Notebook(person, JPY_SESSION_NAME=path)
    said = named.run(IMPORTS + "%holdfast session")
    assert "session 'work/digits.ipynb' keeps" in said
    named.end()


def test_import_torch_in_a_notebook(person):
    notebook = Notebook(person)
    notebook.run("%load_ext holdfast.torch\nimport torch\nfrom torch import nn")
    said = notebook.run("print(torch.ones(3).sum().item(), nn.Linear.__module__)")
    assert said.startswith("3.0 holdfast.nn")
    assert "holdfastd" in notebook.run("%holdfast")
    notebook.end()


BAR = """
import time
from holdfast.tqdm import trange
x = torch.ones(1000, 1000) / 1000
y = x @ x
y.sum().item()
bar = trange(60, disable=False, file=__import__('io').StringIO())
ahead = []
start = time.monotonic()
for i in bar:
    for _ in range(4):
        y = y @ x
    ahead.append(i + 1 - bar.n)
submitted = time.monotonic() - start
"""


def test_a_bar_that_knows_what_is_done(person):
    notebook = Notebook(person)
    notebook.run(IMPORTS + BAR)
    # While the loop was ahead, the bar was not: it says what the device has done.
    assert int(notebook.run("print(max(ahead))")) > 5
    assert notebook.run("print(bar.n, bar.total)") == "60 60\n"
    began = "t = time.monotonic(); y.sum().item(); print(time.monotonic() - t < 0.5)"
    assert notebook.run(began) == "True\n"  # the end of the loop has waited
    left = "for i in trange(9, file=__import__('io').StringIO()):\n    if i == 4: break"
    notebook.run(left)
    notebook.end()
