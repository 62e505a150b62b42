"""Write the grid of a sweep: who is fastest where, what limits whom, and where that changes."""
