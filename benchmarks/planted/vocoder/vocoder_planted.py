"""The vocoder with one thing done as one should not, and a wider one."""

import queue
import threading
import time

import torch
import vocoder
from torch import nn
from vocoder import Leaky, normal, step_of


class Written(nn.Module):
    """A leaky ReLU from its two halves."""

    def forward(self, x):
        return torch.where(x > 0, x, torch.zeros_like(x)) + 0.1 * torch.where(x < 0, x, torch.zeros_like(x))


def written_activation():
    return step_of(activation=Written)


class Turned(Leaky):
    """Gets channels last, as other layers of ours do, and gives them back first."""

    def forward(self, x):
        return super().forward(x.transpose(1, 2).contiguous()).transpose(1, 2).contiguous()


def turned():
    return step_of(activation=Turned)


class Polled:
    """Another thread prepares, and we look every other millisecond whether it is done."""

    def __init__(self):
        self.asked, self.done = queue.SimpleQueue(), queue.SimpleQueue()
        threading.Thread(target=self.prepare, daemon=True).start()

    def prepare(self):
        while True:
            self.done.put(normal(self.asked.get()))

    def __call__(self, raw):
        self.asked.put(raw)
        while True:
            time.sleep(0.002)
            if not self.done.empty():
                return self.done.get()


def polled():
    return step_of(Polled())


# Not comparable


def wider():
    vocoder.WIDTH += 16
    return step_of()
