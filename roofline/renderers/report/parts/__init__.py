"""What the sections of the page are made of: elements, tables, pictures, columns and sums."""
