"""The JSON of Chrome's trace viewer, read as it comes."""
