"""A step carried to another device, in each format."""
