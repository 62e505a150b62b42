"""Which framework ran a step, and what its program is written in: by the versions that were recorded, not by a name."""

from __future__ import annotations

from roofline.core.schema import Profile

#: Distributions of frameworks that run ops, and of the libraries that lie on them.
_FRAMEWORKS = ("torch", "jax", "tensorflow")
_LIBRARIES = ("keras", "tf_keras")


def framework(profile: Profile) -> str:
    """The distribution of the framework that ran the ops; of a run without versions, as a trace, its backend's name."""
    return next((name for name in _FRAMEWORKS if name in profile.versions), profile.backend)


def written_in(profile: Profile) -> str:
    """The distribution that the program is written with: a library that lies on a framework, or the framework."""
    return next((name for name in _LIBRARIES if name in profile.versions), framework(profile))
