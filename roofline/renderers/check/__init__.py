"""What `roofline check` found, in each format."""
