"""What every recorder shares: the child process, and the protocol of plain, profiled and counting runs."""
