"""What `roofline check` does: one profile judged by another, measure by measure."""
