"""Share options among verbs: those of a measurement, of output paths, of proofs."""
