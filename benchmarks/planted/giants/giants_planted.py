"""The small giants, with a setting that costs."""

from giants import llama_train, vit


def eager_vit():
    """As it must be where attention weights are wanted."""
    return vit("eager")


def checkpoints():
    return llama_train(checkpoints=True)


def larger_vocabulary():
    return llama_train(vocabulary=2048)
