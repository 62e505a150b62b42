"""What `import roofline` offers beside what the rooms below hold themselves: one file per verb of the command line.

Wherever a profile is asked for, the path of a saved one, or the short name of one that ships, will do.
"""
