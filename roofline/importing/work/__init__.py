"""The work of calls that somebody else's trace recorded."""
