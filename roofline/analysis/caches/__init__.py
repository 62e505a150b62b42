"""What of an op's traffic the last-level cache takes off main memory."""
