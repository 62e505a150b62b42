"""Project a step to the ceilings of another device, as `roofline whatif` does."""
