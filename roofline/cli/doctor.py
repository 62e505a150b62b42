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
    from roofline.version import __version__

    backends = plugins.names("roofline.backends")
    width = max(map(len, backends))

    def row(name: str, text: str) -> None:
        print(f"{name:{width}s} {text}")

    row("roofline", f"{__version__}, Python {platform.python_version()}")
    here = cpu.detect()
    load = os.getloadavg()[0]
    row("CPU", f"{here.name}, {here.cores} cores in use, load {load:.2f}")
    if load > 0.5 * here.cores:
        row("", "The machine is busy: measurements will be slow and noisy; wait, or use fewer --threads.")
    found = nvidia.snapshots()
    for snapshot in found:
        row("GPU", f"{snapshot.name}, driver {snapshot.driver}")
        if snapshot.throttle:
            row("", f"Clocks are held back: {', '.join(snapshot.throttle)}.")
    if not found:
        row("GPU", f"none: {nvidia.unavailable()}")
    for name in backends:
        described = backend.load(name)
        row(name, plugins.installed(described.extras, described.requires))
    stored = calibration.stored()
    row("ceilings", f"{len(stored)} calibrations in {calibration.folder()}" if stored else "none measured yet")
    if not stored and not plugins.distributions("torch", ("torch",))["torch"]:
        row("", "They are measured with torch, which is not installed: pip install 'roofline[torch]'.")
    for variable in _STEERING:
        if variable in os.environ:
            row("set", f"{variable}={os.environ[variable]} (it changes what is measured, and is recorded)")
