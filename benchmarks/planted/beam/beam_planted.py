"""Beam search with one thing done as one should not."""

import torch
from beam import BEAMS, LAYERS, TEXTS, VOCABULARY, make_step


def sorted_all(scores):
    values, places = scores.sort(dim=1, descending=True)
    return values[:, :BEAMS], places[:, :BEAMS]


def all_sorted():
    return make_step(best=sorted_all)


def chosen_one_by_one(values, places):
    """Candidates as numbers of Python, text by text, as beam scorers do it, which may have to skip some."""
    beams = []
    for text in range(TEXTS):
        candidates = []
        for value, place in zip(values[text], places[text], strict=True):
            row = text * BEAMS + torch.div(place, VOCABULARY, rounding_mode="floor").item()
            candidates.append(([value.item()], row, (place % VOCABULARY).item()))
        beams += candidates[:BEAMS]
    return tuple(torch.tensor(column) for column in zip(*beams, strict=True))


def one_by_one():
    return make_step(best=lambda scores: scores.topk(2 * BEAMS, dim=1), chosen=chosen_one_by_one)


class Growing:
    """Keys and values of each time in a list, all of which are joined when needed and reordered one by one."""

    def __init__(self):
        self.kept = [([], []) for _ in range(LAYERS)]

    def add(self, layer, t, k, v):
        for times, new in zip(self.kept[layer], (k, v), strict=True):
            times.append(new[:, :, None])
        return tuple(torch.cat(times, dim=2) for times in self.kept[layer])

    def reorder(self, rows):
        self.kept = [tuple([one.index_select(0, rows) for one in times] for times in both) for both in self.kept]


def cache_of_lists():
    return make_step(cache=Growing)
