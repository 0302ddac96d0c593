# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Deep Q-learning with a replay memory and a target network on a grid."""

import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
random.seed(3)


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class Grid:
    moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]

    def reset(self):
        self.at, self.left = [0, 0], 20
        return self.observe()

    def observe(self):
        return np.array(
            [self.at[0] / 3, self.at[1] / 3, self.left / 20], dtype=np.float32
        )

    def step(self, action):
        for axis in range(2):
            self.at[axis] = min(max(self.at[axis] + self.moves[action][axis], 0), 3)
        self.left -= 1
        goal = self.at == [3, 3]
        return self.observe(), 1.0 if goal else -0.05, goal or self.left == 0


class DuelingDQN(nn.Module):
    def __init__(self, n_observations=3, n_actions=4):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(n_observations, 16), nn.ReLU())
        self.value, self.advantage = nn.Linear(16, 1), nn.Linear(16, n_actions)

    def forward(self, x):
        h = self.layer(x)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(dim=-1, keepdim=True)


rng = np.random.default_rng(0)
policy_net, target_net = DuelingDQN(), DuelingDQN()
for p in policy_net.parameters():
    p.data = torch.as_tensor(rng.normal(0, 0.3, p.shape)).float()
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=5e-3, amsgrad=True)
memory, env, BATCH, GAMMA, TAU = ReplayMemory(200), Grid(), 16, 0.95, 0.1


def optimize_model():
    if len(memory) < BATCH:
        return None
    batch = Transition(*zip(*memory.sample(BATCH)))
    non_final_mask = torch.tensor(
        tuple(s is not None for s in batch.next_state), dtype=torch.bool
    )
    non_final = torch.cat([s for s in batch.next_state if s is not None])
    state_batch, action_batch = torch.cat(batch.state), torch.cat(batch.action)
    reward_batch = torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(BATCH)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final).max(1)[0]
    expected = (next_state_values * GAMMA) + reward_batch
    loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


for episode in range(5):
    state, done, losses, steps = torch.tensor(env.reset()).unsqueeze(0), False, [], 0
    while not done:
        if random.random() > 0.4:
            with torch.no_grad():
                action = policy_net(state).max(1)[1].view(1, 1)
        else:
            action = torch.tensor([[random.randrange(4)]], dtype=torch.long)
        observation, reward, done = env.step(action.item())
        steps += 1
        following = None if done else torch.tensor(observation).unsqueeze(0)
        memory.push(state, action, following, torch.tensor([reward]))
        state = following
        loss = optimize_model()
        if loss is not None:
            losses.append(loss)
        theirs, ours = target_net.state_dict(), policy_net.state_dict()
        for key in ours:
            theirs[key] = ours[key] * TAU + theirs[key] * (1 - TAU)
        target_net.load_state_dict(theirs)
    print(
        "episode",
        episode,
        "steps",
        steps,
        "loss",
        float(np.mean(losses)) if losses else None,
    )
