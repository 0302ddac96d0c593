# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Programs that a framework runs: Lightning, stable-baselines3."""

import copy

import pytest
import torch

from three_steps import assert_near


@pytest.fixture
def lightning():
    return pytest.importorskip("lightning")


def module_of(lightning):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Sequential(
                torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 3)
            )
            self.seen, self.checked = [], []

        def training_step(self, batch, index):
            loss = torch.nn.functional.cross_entropy(self.body(batch[0]), batch[1])
            self.seen.append(loss.detach())
            self.log("loss", loss, on_epoch=True)
            return loss

        def validation_step(self, batch, index):
            loss = torch.nn.functional.cross_entropy(self.body(batch[0]), batch[1])
            self.checked.append(loss)
            self.log("val", loss)

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=0.05)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    return Module()


def test_lightning(device, lightning, tmp_path):
    from holdfast_torch.integrations import lightning as ours

    x, y = torch.randn(12, 4), torch.randint(3, (12,))
    rows = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=4
    )
    there = module_of(lightning)
    here = copy.deepcopy(there)
    quiet = dict(
        max_epochs=2,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        default_root_dir=tmp_path,
        gradient_clip_val=1.0,
    )
    lightning.Trainer(accelerator="cpu", **quiet).fit(here, rows, rows)
    trainer = lightning.Trainer(strategy=ours.strategy(), **quiet)
    trainer.fit(there, rows, rows)
    assert there.seen[0].device.type == device
    assert_near(torch.stack(there.seen), torch.stack(here.seen), 1e-3)
    assert_near(torch.stack(there.checked), torch.stack(here.checked), 1e-3)
    assert len(there.seen) == 6
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    saved = torch.load(tmp_path / "x.ckpt", map_location="cpu", weights_only=False)
    assert_near(saved["state_dict"], dict(here.state_dict()), 1e-3)


def test_fabric(device, lightning):
    from holdfast_torch.integrations import lightning as ours

    fabric = lightning.Fabric(strategy=ours.fabric_strategy())
    fabric.launch()
    model = torch.nn.Linear(4, 2)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    x = fabric.to_device(torch.randn(3, 4))
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        fabric.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    assert x.device.type == device and losses[2] < losses[1] < losses[0]


@pytest.mark.parametrize("kind", ["PPO", "A2C", "DQN"])
def test_stable_baselines(device, kind):
    baselines = pytest.importorskip("stable_baselines3")
    options = dict(policy_kwargs={"net_arch": [16]}, seed=0, verbose=0)
    if kind == "PPO":
        options.update(n_steps=32, batch_size=16, n_epochs=1)
    if kind == "DQN":
        options.update(learning_starts=16, batch_size=8, train_freq=8)
    model = getattr(baselines, kind)(
        "MlpPolicy", "CartPole-v1", device=device, **options
    )
    before = [p.detach().cpu() for p in model.policy.parameters()]
    model.learn(64)
    after = list(model.policy.parameters())
    assert all(p.device.type == device for p in after)
    changed = [not torch.equal(a.detach().cpu(), b) for a, b in zip(after, before)]
    assert any(changed)
    observation = model.get_env().reset()
    action, _ = model.predict(observation, deterministic=True)
    # The same weights on the CPU choose the same.
    twin = getattr(baselines, kind)("MlpPolicy", "CartPole-v1", device="cpu", **options)
    twin.policy.load_state_dict(
        {k: v.cpu() for k, v in model.policy.state_dict().items()}
    )
    assert action == twin.predict(observation, deterministic=True)[0]
