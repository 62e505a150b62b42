"""N-BEATS, with a loader of windows and with an average of its weights."""

import copy

import torch
from seasons import AHEAD, BACK, BATCH, make_train
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    """One window at a time, scaled when it is asked for."""

    def __init__(self, series):
        self.series = series

    def __len__(self):
        return BATCH

    def __getitem__(self, index):
        some = self.series[0, index : index + BACK + AHEAD]
        some = some / some[:BACK].abs().mean()
        return some[:BACK], some[BACK:]


def loader(series):
    batches = DataLoader(Windows(series), batch_size=BATCH, num_workers=0)
    return lambda: next(iter(batches))


def loaded():
    return make_train(batches=loader)


def average(model, decay=0.999):
    kept = copy.deepcopy(model)

    @torch.no_grad()
    def update():
        """By a state dict, as in many recipes."""
        new = {name: value.clone() for name, value in model.state_dict().items()}
        old = kept.state_dict()
        kept.load_state_dict({name: decay * old[name] + (1 - decay) * new[name] for name in old})

    return update


def averaged():
    return make_train(after=average)
