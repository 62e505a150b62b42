"""What the piece `published` of `make gpu` measures: the rows of presets, and single figures of other publications."""
