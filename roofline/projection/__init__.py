"""What `roofline whatif` does: a step carried to the ceilings of another device."""
