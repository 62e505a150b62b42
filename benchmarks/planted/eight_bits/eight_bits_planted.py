"""Weights in eight bits which every call turns into numbers, to save memory."""

import torch.nn.functional as F
from eight_bits import Int8Linear, make_step


class EachTime(Int8Linear):
    def loaded(self):
        pass

    def forward(self, x):
        return F.linear(x, self.restored())


def each_time():
    return make_step(EachTime)
