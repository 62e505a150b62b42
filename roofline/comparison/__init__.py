"""Two profiles: which ops correspond, and the difference of their times as a sum that closes."""
