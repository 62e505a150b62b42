"""Measure a step at many points, as on some backends with some batches, and tell where the answer changes.

plan.py    the points, each with a key by its content
folder.py  what of them is there: a profile each, or why there is none
lock.py    one measurement at a time on a device, whoever asks for it
run.py     measures those that are missing, one at a time
nodes.py   measures them on several nodes at once, each of which does it by run.py
ray_nodes.py  the nodes of a Ray cluster: on_node.py runs there, machine.py describes them
budget.py  measures them for a limited time, where the answer changes
grid.py    who wins where, by what, and what limits whom
prediction.py  what a step takes between measured points
"""
