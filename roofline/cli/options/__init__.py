"""What several verbs share: the options of a measurement, where output may go, proofs."""
