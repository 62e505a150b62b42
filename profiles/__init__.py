"""Reference profiles, each measured by the `command` it holds on the device it names; that command records it again.

`<model>-<backend>-<mode>-b<batch>-s<seq>-<device>.json` is what a first run leaves. A folder holds one of each row of
the preset that it is called after, on the backend of the preset's first column (`make reference`): one sample and one
thread, and of what a small machine cannot hold one layer in full width, or the size tiny. `roofline show` says in what
each differs from its row; none is a figure of a device that it does not name.
"""
