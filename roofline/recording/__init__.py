"""Record a step in a child process, by the protocol of plain, profiled and counting runs that all backends share."""
