# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Advantage actor-critic in a corridor, one network with two heads."""

from collections import namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

SavedAction = namedtuple("SavedAction", ["log_prob", "value", "entropy"])


class Corridor:
    """Eleven cells; the right end pays 1, the left end ends without pay."""

    def reset(self):
        self.at, self.time = 5, 0
        return self.observe()

    def observe(self):
        one_hot = np.zeros(11, dtype=np.float32)
        one_hot[self.at] = 1.0
        return one_hot

    def step(self, move):
        self.at += 1 if move else -1
        self.time += 1
        done = self.at in (0, 10) or self.time >= 25
        return self.observe(), float(self.at == 10) - 0.01, done


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(11, 20)
        self.action_head = nn.Linear(20, 2)
        self.value_head = nn.Linear(20, 1)

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


rng = np.random.RandomState(8)
model = ActorCritic()
for parameter in model.parameters():
    parameter.data.copy_(torch.Tensor(rng.uniform(-0.3, 0.3, parameter.shape)))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
env = Corridor()
for episode in range(6):
    saved, rewards = [], []
    state, done = env.reset(), False
    while not done:
        probs, value = model(torch.from_numpy(state))
        m = Categorical(probs)
        action = torch.as_tensor(int(rng.rand() < probs[1].item()))
        saved.append(SavedAction(m.log_prob(action), value, m.entropy()))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
    R, returns = 0.0, []
    for r in reversed(rewards):
        R = r + 0.95 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    policy_losses, value_losses = [], []
    for (log_prob, value, entropy), R in zip(saved, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage - 0.01 * entropy)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    print("Episode", episode, "steps", len(rewards), "loss", round(loss.item(), 4))
