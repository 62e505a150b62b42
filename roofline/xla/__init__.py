"""XLA's programs: what ran, its work and its time; JAX, which compiles everything to them."""
