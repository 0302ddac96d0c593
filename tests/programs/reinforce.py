# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Policy gradient (REINFORCE) on a pole that is balanced in Python."""

import argparse
import math
from collections import deque
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class CartPole:
    """The classic control problem: keep a pole on a cart upright."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        return self.state.copy()

    def step(self, action):
        x, v, angle, spin = self.state
        force = 10.0 if action == 1 else -10.0
        temp = (force + 0.05 * spin**2 * math.sin(angle)) / 1.1
        grip = 4.0 / 3.0 - 0.1 * math.cos(angle) ** 2 / 1.1
        turn = (9.8 * math.sin(angle) - math.cos(angle) * temp) / (0.5 * grip)
        pull = temp - 0.05 * turn * math.cos(angle) / 1.1
        self.state = np.array(
            [x + 0.02 * v, v + 0.02 * pull, angle + 0.02 * spin, spin + 0.02 * turn]
        )
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095
        return self.state.copy(), 1.0, bool(done), {}


parser = argparse.ArgumentParser(description="REINFORCE")
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--episodes", type=int, default=5)
args = parser.parse_args()
dice = np.random.default_rng(1)


class Policy(nn.Module):
    def __init__(self):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(4, 16)
        self.dropout = nn.Dropout(p=0.0)
        self.affine2 = nn.Linear(16, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.affine2(x), dim=1)


policy = Policy()
start = np.random.default_rng(5)
for p in policy.parameters():
    p.data = torch.from_numpy(start.normal(0, 0.3, p.shape)).float()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()


def select_action(state):
    state = torch.from_numpy(state).float().unsqueeze(0)
    probs = policy(state)
    m = Categorical(probs)
    # Drawn by NumPy, so that every run draws the same.
    action = torch.tensor([int(dice.random() < probs[0, 1].item())])
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    R, policy_loss, returns = 0, [], deque()
    for r in policy.rewards[::-1]:
        R = r + args.gamma * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    return policy_loss.item()


env, running_reward = CartPole(3), 10
for i_episode in count(1):
    state, ep_reward = env.reset(), 0
    for t in range(1, 60):
        state, reward, done, _ = env.step(select_action(state))
        policy.rewards.append(reward)
        ep_reward += reward
        if done:
            break
    running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
    loss = finish_episode()
    print(f"Episode {i_episode} last reward {ep_reward:.0f} loss {loss:.4f}")
    if i_episode >= args.episodes:
        break
