"""Models that rank what to show to whom."""
