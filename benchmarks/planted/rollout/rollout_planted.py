"""REINFORCE with environments that are objects."""

import math

import numpy as np
from rollout import Poles, make_train


class Pole:
    """One of them, as gym has it."""

    def __init__(self, state):
        self.state = tuple(state)

    def step(self, action):
        x, v, angle, turn = self.state
        force = 10.0 if action == 1 else -10.0
        cos, sin = math.cos(angle), math.sin(angle)
        temp = (force + 0.05 * turn**2 * sin) / 1.1
        bend = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        push = temp - 0.05 * bend * cos / 1.1
        self.state = (x + 0.02 * v, v + 0.02 * push, angle + 0.02 * turn, turn + 0.02 * bend)
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        if fallen:
            self.state = (0.01,) * 4
        return self.state, -1.0 if fallen else 1.0


class Vector:
    """A list of environments, one step after the other."""

    def __init__(self):
        self.envs = [Pole(row) for row in Poles().state.tolist()]

    @property
    def state(self):
        return np.array([env.state for env in self.envs], dtype=np.float32)

    def step(self, action):
        rewards = [env.step(int(a))[1] for env, a in zip(self.envs, action, strict=True)]
        return self.state, np.array(rewards, dtype=np.float32)


def one_env_at_a_time():
    return make_train(world=Vector)
