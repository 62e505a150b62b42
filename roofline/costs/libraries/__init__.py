"""Formulas of ops that libraries bring, one file per library; each says where its formulas are from.

A file is a module that registers functions with `roofline.costs.custom.formula`, as a user's own would. It is loaded
when the first op that is not torch's own is looked up.
"""
