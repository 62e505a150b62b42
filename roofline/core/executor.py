"""What launches the ops of a step."""

from __future__ import annotations

from roofline.core.profile import Profile


def executor_of(profile: Profile) -> str:
    """What launches the ops of a step, as the launch floors of a device are named."""
    mechanism = profile.profiled.mechanism if profile.profiled else "eager"
    if "-" in mechanism:  # one executor serves many backends: all that XLA compiles runs as its thunks
        return mechanism
    family = "torch" if "torch" in profile.backend else profile.backend
    return f"{family}-{mechanism}"
