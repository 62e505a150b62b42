"""A policy learns to balance poles by REINFORCE: eight steps of 128 environments in NumPy, then an update."""

import numpy as np
import torch
from torch import nn

ENVS, HORIZON, HIDDEN = 128, 8, 128


class Poles:
    """All environments at once."""

    def __init__(self):
        self.state = np.random.default_rng(0).uniform(-0.05, 0.05, (ENVS, 4)).astype(np.float32)

    def step(self, action):
        x, v, angle, turn = self.state.T
        force = np.where(action == 1, 10.0, -10.0).astype(np.float32)
        cos, sin = np.cos(angle), np.sin(angle)
        temp = (force + 0.05 * turn**2 * sin) / 1.1
        bend = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        push = temp - 0.05 * bend * cos / 1.1
        new = np.stack((x + 0.02 * v, v + 0.02 * push, angle + 0.02 * turn, turn + 0.02 * bend), axis=1)
        fallen = (np.abs(new[:, 0]) > 2.4) | (np.abs(new[:, 2]) > 0.21)
        new[fallen] = 0.01
        self.state = new.astype(np.float32)
        return self.state, np.where(fallen, -1.0, 1.0).astype(np.float32)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(
            nn.Linear(4, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2)
        )

    def forward(self, x):
        return self.net(x)


def sampled(logits):
    """Which action each environment takes, and its logarithmic probability."""
    log_p = logits.log_softmax(-1)
    action = log_p.argmax(-1)
    return action, log_p.gather(1, action[:, None])[:, 0]


def make_train(world=Poles, sampled=sampled):
    policy, env = Policy(), world()
    optimizer = torch.optim.SGD(policy.parameters(), lr=1e-3)

    def step():
        logs, rewards = [], []
        state = env.state
        for _ in range(HORIZON):
            action, log_p = sampled(policy(torch.from_numpy(state)))
            state, reward = env.step(action.numpy())
            logs.append(log_p)
            rewards.append(reward)
        back = np.cumsum(np.stack(rewards)[::-1], axis=0)[::-1].copy()
        loss = -(torch.stack(logs) * torch.from_numpy(back - back.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
