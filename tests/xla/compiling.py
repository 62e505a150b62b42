"""How tests have XLA compile what they look at."""

from __future__ import annotations

from hypothesis import settings

#: In `make test` by the older of XLA's two ways to join instructions on a CPU, in half the time: the same lines of our
#: code run. `make test-all`, and all that records or reads programs elsewhere, has XLA's own choice.
OPTIONS = {} if settings.get_current_profile_name() == "all" else {"xla_cpu_use_fusion_emitters": False}
