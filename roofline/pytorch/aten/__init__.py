"""The work of one aten op."""
