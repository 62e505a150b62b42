"""The same work in another time: other conditions, other hardware, other rates, and the gap."""
