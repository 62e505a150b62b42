"""Models that write a text token by token."""
