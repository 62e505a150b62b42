"""How the names of kernels, ops and scopes are written where there is little room: short, and never two alike."""
