"""The hypernetwork, not quite compiled."""

from hyper import Hyper, run


class Checked(Hyper):
    """Weights are scaled down where they are too large, which they are not."""

    def checked(self, w):
        if w.abs().max().item() > 1e4:
            w = w / w.abs().max()
        return w


def checked():
    return run(Checked())


def for_debugging():
    """The backend with which somebody looked for a mistake."""
    return run(Hyper(), backend="eager")
