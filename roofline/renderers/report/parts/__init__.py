"""Provide the pieces of all sections: elements, tables, pictures, columns and sums."""
