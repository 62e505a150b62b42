"""Profiles that ship, each measured by the `command` it holds on the device it names; that command records it again.

`roofline show` lists them by short name, the path below this folder without `.json` (`roofline/core/shipped.py`).
`<model>-<backend>-<mode>-b<batch>-s<seq>-<device>` is what a first run leaves. `h100/` holds the rows of docs/h100.md.
The other folders hold the rows of the preset that they are called after, on two backends each (`make reference`): one
sample and one thread, and of what a small machine cannot hold one layer in full width, or the size tiny. `roofline
show` says in what each differs from its row; none is a figure of a device that it does not name.
"""
