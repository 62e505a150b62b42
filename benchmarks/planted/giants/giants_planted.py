"""The small giants, with a setting that costs."""

from giants import llama, vit


def eager_vit():
    """As it must be where attention weights are wanted."""
    return vit("eager")


def checkpoints():
    return llama(checkpoints=True)


def larger_vocabulary():
    return llama(vocabulary=2048)
