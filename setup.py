"""The packages of the distribution; everything else is said in pyproject.toml.

models/ and profiles/ lie at the top of the repository, where a reader looks for them, and install as roofline.models
and roofline.profiles: setuptools finds packages, but not under another name.
"""

from setuptools import find_packages, setup

inside = find_packages(include=["roofline", "roofline.*"])
beside = find_packages(include=["models", "models.*", "profiles"])

setup(packages=[*inside, *(f"roofline.{name}" for name in beside)])
