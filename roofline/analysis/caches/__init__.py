"""Find the traffic of ops that the last-level cache takes off main memory."""
