"""`roofline doctor`."""

from __future__ import annotations

#: Variables that change what the frameworks do.
_STEERING = (
    *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "NVIDIA_TF32_OVERRIDE", "CUDA_LAUNCH_BLOCKING", "XLA_FLAGS"),
    *("TF_XLA_FLAGS", "TF_NUM_INTEROP_THREADS", "XLA_PYTHON_CLIENT_PREALLOCATE"),
)


def command() -> None:
    """Say what this machine and this installation can measure, and what would disturb a measurement."""
    import os
    import platform

    from roofline import plugins
    from roofline.devices import calibration, cpu, nvidia
    from roofline.recording import backend
    from roofline.renderers._terminal import columns
    from roofline.version import __version__

    rows = [("roofline", f"{__version__}, Python {platform.python_version()}")]
    here = cpu.detect()
    load = os.getloadavg()[0]
    rows += [("CPU", f"{here.name}, {here.cores} cores in use, load {load:.2f}")]
    if load > 0.5 * here.cores:
        rows += [("", "The machine is busy: measurements will be slow and noisy; wait, or use fewer --threads.")]
    found = nvidia.snapshots()
    for snapshot in found:
        rows += [("GPU", f"{snapshot.name}, driver {snapshot.driver}")]
        if snapshot.throttle:
            rows += [("", f"Clocks are held back: {', '.join(snapshot.throttle)}.")]
    if not found:
        rows += [("GPU", f"none: {nvidia.unavailable()}")]
    for name in plugins.names("roofline.backends"):
        described = backend.load(name)
        rows += [(name, plugins.installed(described.extras, described.requires))]
    stored = calibration.stored()
    rows.append(
        ("ceilings", f"{len(stored)} calibrations in {calibration.folder()}" if stored else "none measured yet")
    )
    if not stored and not plugins.importable("torch"):
        rows += [("", "They are measured with torch, which is not installed: pip install 'roofline[torch]'.")]
    for variable in _STEERING:
        if variable in os.environ:
            rows += [("set", f"{variable}={os.environ[variable]} (it changes what is measured, and is recorded)")]
    print("\n".join(columns(rows, left=(0, 1), separator=" ")))
