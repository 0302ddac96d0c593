# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Proximal policy optimisation (Schulman et al. 2017) with generalised advantages:
`python ppo.py STEPS` of the environment, 512 a round, stored in tensors one by one,
then four passes over small batches."""

import sys

import torch
from cart_pole import CartPole
from torch import nn, optim
from torch.distributions import Categorical

ROUND, PASSES, BATCH = 512, 4, 64
DISCOUNT, SMOOTHING, CLIP = 0.99, 0.95, 0.2


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64))
        self.policy, self.value = nn.Linear(64, 2), nn.Linear(64, 1)

    def forward(self, x):
        x = torch.tanh(self.body(x))
        return Categorical(logits=self.policy(x)), self.value(x).squeeze(-1)


def play(agent, env, state):
    """One round: observations, actions, log probabilities, rewards, ends, values."""
    seen = torch.zeros(ROUND, 4)
    actions, log_probs, rewards, ends, values = torch.zeros(5, ROUND).unbind(0)
    for step in range(ROUND):
        seen[step] = state
        with torch.no_grad():
            choice, values[step] = agent(state)
            action = choice.sample()
            log_probs[step] = choice.log_prob(action)
        actions[step] = action
        observation, reward, done = env.step(action.item())
        rewards[step], ends[step] = reward, float(done)
        observation = env.reset() if done else observation
        state = torch.tensor(observation, dtype=torch.float32)
    return state, (seen, actions, log_probs, rewards, ends, values)


def advantages(rewards, ends, values, last):
    """Backward through the round, one step at a time."""
    result, gain = torch.zeros(ROUND), 0
    for step in reversed(range(ROUND)):
        ahead = last if step == ROUND - 1 else values[step + 1]
        alive = 1 - ends[step]
        surprise = rewards[step] + DISCOUNT * ahead * alive - values[step]
        gain = surprise + DISCOUNT * SMOOTHING * alive * gain
        result[step] = gain
    return result


def learn(agent, optimizer, seen, actions, log_probs, gains, targets):
    for _ in range(PASSES):
        for rows in torch.randperm(ROUND).split(BATCH):
            choice, values = agent(seen[rows])
            ratio = (choice.log_prob(actions[rows]) - log_probs[rows]).exp()
            gain = gains[rows]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
            loss = -torch.min(ratio * gain, clipped * gain).mean()
            loss = loss + 0.5 * ((values - targets[rows]) ** 2).mean()
            loss = loss - 0.01 * choice.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    agent, env = Agent(), CartPole(0)
    optimizer = optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    state = torch.tensor(env.reset(), dtype=torch.float32)
    for done in range(0, int(sys.argv[1]), ROUND):
        state, (seen, actions, log_probs, *rest) = play(agent, env, state)
        with torch.no_grad():
            gains = advantages(*rest, agent(state)[1])
        loss = learn(agent, optimizer, seen, actions, log_probs, gains, gains + rest[2])
        print(f"{done + ROUND} steps, {rest[1].sum().item():.0f} ends, loss {loss:.4f}")


if __name__ == "__main__":
    main()
