"""The work of one HLO instruction."""
