# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Actor-critic: `python actor_critic.py STEPS` of the environment. Every step reads
the action, every episode ends with a read per step of what the critic said."""

import sys

import torch
from cart_pole import CartPole
from torch import nn, optim
from torch.distributions import Categorical
from torch.nn import functional


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 128)
        self.actor = nn.Linear(128, 2)
        self.critic = nn.Linear(128, 1)

    def forward(self, x):
        x = functional.relu(self.body(x))
        return functional.softmax(self.actor(x), dim=-1), self.critic(x)


def play(model, env, saved, rewards):
    """One episode of at most 500 steps."""
    observation = env.reset()
    for _ in range(500):
        probs, value = model(torch.from_numpy(observation).float())
        choice = Categorical(probs)
        action = choice.sample()
        saved.append((choice.log_prob(action), value))
        observation, reward, done = env.step(action.item())
        rewards.append(reward)
        if done:
            break


def learn(optimizer, saved, rewards):
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + 0.99 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    actor, critic = [], []
    for (log_prob, value), target in zip(saved, returns):
        advantage = target - value.item()
        actor.append(-log_prob * advantage)
        critic.append(functional.smooth_l1_loss(value, torch.tensor([target])))
    optimizer.zero_grad()
    loss = torch.stack(actor).sum() + torch.stack(critic).sum()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    steps = int(sys.argv[1])
    torch.manual_seed(0)
    model = ActorCritic()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    env, done = CartPole(0), 0
    while done < steps:
        saved, rewards = [], []
        play(model, env, saved, rewards)
        done += len(rewards)
        loss = learn(optimizer, saved, rewards)
    print(f"{done} steps, the last episode {len(rewards)} long, loss {loss:.4f}")


if __name__ == "__main__":
    main()
