"""Tables of a paper in LaTeX: what may come from anywhere made into text, and a float as wide as its column."""
