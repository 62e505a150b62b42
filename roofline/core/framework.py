"""Name the framework that ran a step, and what its program is written in: as its backend says."""

from __future__ import annotations

from roofline.core.schema import Profile

#: Of profiles that were made before a backend said it, by the distributions whose versions they have: frameworks that
#: run ops, and libraries that lie on them. A new backend needs no entry.
_FRAMEWORKS = ("torch", "jax", "tensorflow")
_LIBRARIES = ("keras", "tf_keras")


def framework(profile: Profile) -> str:
    """Name the distribution of the framework that ran the ops; of a run that has none, as a trace, its backend."""
    return profile.framework or next((name for name in _FRAMEWORKS if name in profile.versions), profile.backend)


def written_in(profile: Profile) -> str:
    """Name the distribution that the program is written with: a library that lies on a framework, or the framework."""
    if profile.framework is not None:
        return profile.written_in or profile.framework
    return next((name for name in _LIBRARIES if name in profile.versions), framework(profile))
