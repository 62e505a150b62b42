"""The ConvNeXt, with channels that move to and fro, with a copy of itself, otherwise written, and wider."""

import copy

import torch.nn.functional as F
from convnext import WIDTH, Block, ConvNeXt, make_train, show


def first(x):
    return x.permute(0, 3, 1, 2).contiguous()


def last(x):
    return x.permute(0, 2, 3, 1).contiguous()


class Moved(Block):
    """Between any two layers, channels come first again."""

    def mixed(self, x):
        x = first(self.norm(last(x)))
        x = F.gelu(first(self.up(last(x))))
        return first(self.scale * self.down(last(x)))


def moved():
    return show(ConvNeXt(Moved))


kept = {}


def keep(model, rule, loss):
    """So that one can go back to it, if the loss grows."""
    kept["last"] = copy.deepcopy(model), copy.deepcopy(rule.state_dict())


def copied():
    return make_train(after=keep)


class ByFunctions(Block):
    def mixed(self, x):
        x = F.layer_norm(x.movedim(1, -1), x.shape[1:2], self.norm.weight, self.norm.bias)
        x = F.linear(F.gelu(F.linear(x, self.up.weight, self.up.bias)), self.down.weight, self.down.bias)
        return x.mul(self.scale).movedim(-1, 1)


def by_functions():
    return show(ConvNeXt(ByFunctions))


def wider():
    return show(ConvNeXt(width=WIDTH + 16))
