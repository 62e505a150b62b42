"""The ranks of one job, from their profiles: who is waited for, by how much, and what it does differently.

    job = ranks.describe(profiles)                        # rows of ranks, of collectives, of phases; the straggler

Rests on what each rank's trace says of its collectives (`Profile.collectives`). A collective ends on all of its ranks
at one time and cannot end before the last has begun: what it lasts longer than on the rank where it is shortest is
waiting, and the clocks of the ranks are those in which the ends agree.
"""

from roofline.ranks.job import Job, describe

__all__ = ["Job", "describe"]
