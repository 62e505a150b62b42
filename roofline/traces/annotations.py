"""Our own annotations in a trace: a live run writes them, and an imported trace may be of one."""

from __future__ import annotations

#: Prefix of the annotations that delimit profiled steps; "#" and the step's number follow.
STEP = "roofline:step"
#: Annotation of the steps that go before a profiled one (`recording.protocol.settling`).
SETTLING = "roofline:settling"
