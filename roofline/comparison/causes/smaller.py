"""What two runs show beside causes that explain their difference without it: told in a sentence, and no finding."""

from __future__ import annotations

#: Larger findings that explain this part of a difference explain it. By choice, as docs/plants.md counts it.
_EXPLAINED = 0.8
#: What is below this part of the difference is small beside them. By choice: what a change does to its neighbours (what
#: the caches hold, how far ahead the host is) rarely comes to more, and looks like a cause of its own.
_SMALL = 1 / 8


def is_smaller(difference: float, larger: float, seconds: float) -> bool:
    """Whether `seconds` of a difference are small beside the larger findings, `larger` in all, which explain it [s]."""
    explained = larger if difference > 0 else -larger
    return explained >= _EXPLAINED * abs(difference) and abs(seconds) < _SMALL * abs(difference)
