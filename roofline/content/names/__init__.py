"""Shorten the names of kernels, ops and scopes, so that no two of a table are alike."""
