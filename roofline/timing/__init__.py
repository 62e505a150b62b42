"""What every recorder needs of time: the times of a step's ops, of its host and of its idle moments."""
