# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Policy gradient: `python policy_gradient.py STEPS` of the environment, learnt from
in batches of 2,000 steps. Every step uploads an observation and reads an action."""

import sys

import numpy
import torch
from cart_pole import CartPole
from torch import nn, optim
from torch.distributions.categorical import Categorical

BATCH = 2000


def batch_of(policy, env):
    """Observations, actions and, for each of them, what its episode paid."""
    observations, actions, weights = [], [], []
    observation, length = env.reset(), 0
    while True:
        observations.append(observation)
        logits = policy(torch.as_tensor(observation, dtype=torch.float32))
        action = Categorical(logits=logits).sample().item()
        observation, _, done = env.step(action)
        actions.append(action)
        length += 1
        if done or length == 500:
            weights += [length] * length
            if len(observations) >= BATCH:
                return observations, actions, weights
            observation, length = env.reset(), 0


def loss_of(policy, observations, actions, weights):
    observations = torch.as_tensor(numpy.array(observations), dtype=torch.float32)
    actions = torch.as_tensor(actions, dtype=torch.int32)
    weights = torch.as_tensor(weights, dtype=torch.float32)
    log_probs = Categorical(logits=policy(observations)).log_prob(actions)
    return -(log_probs * weights).mean()


def main():
    steps = int(sys.argv[1])
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2), nn.Identity())
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    env, done = CartPole(0), 0
    while done < steps:
        batch = batch_of(policy, env)
        done += len(batch[0])
        optimizer.zero_grad()
        loss = loss_of(policy, *batch)
        loss.backward()
        optimizer.step()
        print(f"{done} steps, loss {loss.item():.3f}, return {max(batch[2]):.0f}")


if __name__ == "__main__":
    main()
