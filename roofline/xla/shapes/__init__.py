"""JAX's steps counted without data: arrays that have shapes alone, and the programs that a step of them starts."""
