"""Reference profiles, `<model>-<backend>-<mode>-b<batch>-s<seq>-<device>.json`.

Each was measured by the `command` it holds on the device it names; run that command to record it again.
"""
