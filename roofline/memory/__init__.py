"""Say how much memory a step holds, op by op, what for, and which batch fits into a device."""
