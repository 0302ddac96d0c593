# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Policy gradients and a replay memory, on a corridor."""

import random
from collections import deque

import holdfast as torch
import holdfast.nn.functional as F
from holdfast import nn
from holdfast.distributions import Categorical


class Corridor:
    def __init__(self, length: int = 4) -> None:
        self.length = length
        self.place = 0

    def reset(self) -> torch.Tensor:
        self.place = 0
        return self.observe()

    def observe(self) -> torch.Tensor:
        return F.one_hot(torch.tensor(self.place), self.length).float()

    def step(self, action: int) -> tuple[torch.Tensor, float, bool]:
        self.place = max(0, min(self.length - 1, self.place + 2 * action - 1))
        done = self.place == self.length - 1
        return self.observe(), 1.0 if done else -0.1, done


torch.manual_seed(2)
random.seed(2)
policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
value = nn.Linear(4, 1)
optimizer = torch.optim.Adam(
    [{"params": policy.parameters()}, {"params": value.parameters(), "lr": 1e-2}],
    lr=5e-3,
)
memory: deque[tuple[torch.Tensor, int, float]] = deque(maxlen=64)
world = Corridor()
for episode in range(2):
    state, log_probabilities, rewards = world.reset(), [], []
    for _ in range(10):
        choice = Categorical(logits=policy(state))
        action = choice.sample()
        log_probabilities.append(choice.log_prob(action))
        following, reward, done = world.step(int(action.item()))
        memory.append((state, int(action), reward))
        rewards.append(reward)
        state = following
        if done:
            break
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    returns = (returns - returns.mean()) / (returns.std(unbiased=False) + 1e-6)
    loss = -(torch.stack(log_probabilities) * returns).sum()
    states, actions, earned = zip(*random.sample(list(memory), k=min(4, len(memory))))
    guess = value(torch.stack(list(states))).squeeze(-1)
    loss = loss + F.smooth_l1_loss(guess, torch.tensor(earned))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy.parameters(), 1.0)
    optimizer.step()
    print(episode, loss.item(), len(memory))
