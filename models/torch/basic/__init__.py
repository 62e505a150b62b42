"""Models of few layers, and single products."""
