"""Judge a profile by a baseline, measure by measure, as `roofline check` does."""
