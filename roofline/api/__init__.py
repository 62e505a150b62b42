"""Offer the verbs of the command line to `import roofline`, one file per verb.

Each function takes a profile, the path of a saved one, or the short name of one that ships.
"""
