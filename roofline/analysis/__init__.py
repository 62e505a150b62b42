"""A profile under the ceilings of its device: floors, losses, bounds, totals."""
