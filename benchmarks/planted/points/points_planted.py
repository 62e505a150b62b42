"""The network for clouds, slower."""

import torch
from points import DGCNN, evaluated, gathered, nearest


def sorted_all(x, k):
    """Sorts all points by how far they are, to take the first few."""
    return torch.cdist(x, x).sort(dim=-1).indices[..., :k]


def repeated(x, index):
    """Each point gets a copy of the whole cloud, of which it takes its neighbours."""
    _, points, channels = x.shape
    copies = x.unsqueeze(1).repeat(1, points, 1, 1)
    return copies.gather(2, index[..., None].expand(-1, -1, -1, channels))


def sorting():
    return evaluated(DGCNN(nearest=sorted_all))


def copying():
    return evaluated(DGCNN(gathered=repeated))


def sorting_and_copying():
    return evaluated(DGCNN(nearest=sorted_all, gathered=repeated))


def twice_the_neighbours():
    return evaluated(DGCNN(nearest=lambda x, k: nearest(x, 2 * k), gathered=gathered))
