"""How tests have XLA compile what they look at."""

from __future__ import annotations

import jax
from hypothesis import settings


def _is_known(option: str) -> bool:
    try:
        jax.jit(lambda: 1).lower().compile({option: False})
    except jax.errors.JaxRuntimeError:
        return False
    return True


#: In `make test` by the older of XLA's two ways to join instructions on a CPU, in half the time: the same lines of our
#: code run. `make test-all`, and all that records or reads programs elsewhere, has XLA's own choice; the XLA of JAX
#: 0.12 has no other.
_QUICK = "xla_cpu_use_fusion_emitters"
OPTIONS = {_QUICK: False} if settings.get_current_profile_name() != "all" and _is_known(_QUICK) else {}
