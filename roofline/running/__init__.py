"""Run a program as it is, find where its steps end, and measure some of them: `roofline run`."""
