"""Keywords, with what helps to find a bug left on."""

from keywords import train


def eagerly():
    """run_eagerly, so that one may step through the layers."""
    return train(run_eagerly=True)
