"""Check what can be measured here, and what would disturb it: `roofline doctor`."""

from __future__ import annotations

#: Variables that change what the frameworks do.
STEERING = (
    *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "NVIDIA_TF32_OVERRIDE", "CUDA_LAUNCH_BLOCKING", "XLA_FLAGS"),
    *("TF_XLA_FLAGS", "TF_NUM_INTEROP_THREADS", "XLA_PYTHON_CLIENT_PREALLOCATE"),
)
#: Possible obstacles, by id, and their sentences: docs/guides/troubleshooting.md has a section for each, with the cure.
FINDINGS = {
    "busy": "The machine is busy: measurements will be slow and noisy; wait, or use fewer --threads.",
    "throttled": "Clocks are held back: {reasons}.",
    "no-gpu": "none: {why}",
    "not-installed": "{missing} missing: pip install '{extras}'",  # in the words of `plugins.installed`
    "no-ceilings": "none measured yet",
    "busy-ceilings": "{calibrations} measured on a busy machine: some ceilings may be far too low.",
    "no-probes": "They are measured with torch, which is not installed: pip install 'roofline[torch]'.",
    "steering": "{variable}={value} (it changes what is measured, and is recorded)",
}


def command() -> None:
    """Check what can be measured here, and what would disturb it."""
    import os
    import platform

    from roofline import plugins
    from roofline.content.terminal import columns
    from roofline.devices import calibration, cpu, nvidia
    from roofline.recording import backend
    from roofline.version import __version__

    rows = [("roofline", f"{__version__}, Python {platform.python_version()}")]
    processor = cpu.detect()
    load = os.getloadavg()[0]
    rows += [("CPU", f"{processor.name}, {processor.cores} cores in use, load {load:.2f}")]
    if load > 0.5 * processor.cores:
        rows += [("", FINDINGS["busy"])]
    gpus = nvidia.snapshots()
    for snapshot in gpus:
        rows += [("GPU", f"{snapshot.name}, driver {snapshot.driver}")]
        if snapshot.throttle:
            rows += [("", FINDINGS["throttled"].format(reasons=", ".join(snapshot.throttle)))]
    if not gpus:
        rows += [("GPU", FINDINGS["no-gpu"].format(why=nvidia.unavailable()))]
    for name in plugins.names("roofline.backends"):
        described = backend.load(name)
        rows += [(name, plugins.installed(described.extras, described.requires))]
    stored = calibration.stored()
    ceilings = f"{len(stored)} calibrations in {calibration.folder()}" if stored else FINDINGS["no-ceilings"]
    rows += [("ceilings", ceilings)]
    if busy := sum(bool(content.device.contended) for _, content in stored):
        rows += [("", FINDINGS["busy-ceilings"].format(calibrations=f"{busy} of {len(stored)}"))]
    if not stored and not plugins.importable("torch"):
        rows += [("", FINDINGS["no-probes"])]
    for variable in STEERING:
        if variable in os.environ:
            rows += [("set", FINDINGS["steering"].format(variable=variable, value=os.environ[variable]))]
    print("\n".join(columns(rows, left_aligned=(0, 1), separator=" ")))
