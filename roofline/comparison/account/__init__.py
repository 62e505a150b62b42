"""The account of a difference: facts that add up to wall_A - wall_B (docs/explaining.md)."""
