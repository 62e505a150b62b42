"""Read bytes by hardware counters: the table of a counting tool, and its kernels joined to the ops of a profile."""
