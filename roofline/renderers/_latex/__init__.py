"""Write tables of a paper in LaTeX: text of any origin escaped, and a float as wide as its column."""
