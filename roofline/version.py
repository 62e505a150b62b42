"""The version of this distribution: read by pyproject.toml, written into every profile."""

__version__ = "0.1.0"
