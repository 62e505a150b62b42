"""Judge whether two runs may be compared at all: same work, same precision, same conditions."""
