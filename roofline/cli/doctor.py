"""`roofline doctor`."""

from __future__ import annotations


def command() -> None:
    """Say what this machine and this installation can measure, and what would disturb a measurement."""
    import os
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from roofline import __version__, plugins
    from roofline.devices import calibration, cpu, nvidia

    print(f"roofline {__version__}, Python {platform.python_version()}")
    here = cpu.detect()
    load = os.getloadavg()[0]
    print(f"CPU      {here.name}, {here.cores} cores in use, load {load:.2f}")
    if load > 0.5 * here.cores:
        print("         The machine is busy: measurements will be slow and noisy; wait, or use fewer --threads.")
    found = nvidia.snapshots()
    for snapshot in found:
        print(f"GPU      {snapshot.name}, driver {snapshot.driver}")
        if snapshot.throttle:
            print(f"         Clocks are held back: {', '.join(snapshot.throttle)}.")
    if not found:
        print(f"GPU      none: {nvidia.unavailable()}")
    for name in plugins.names("roofline.backends"):
        module = plugins.load("roofline.backends", name, "backend")
        for distribution in module.REQUIRES:
            try:
                print(f"{name:8s} {distribution} {version(distribution)}")
            except PackageNotFoundError:
                print(f"{name:8s} {distribution} is missing: pip install 'roofline[{plugins.extra(name)}]'")
    stored = calibration.stored()
    print(f"ceilings {len(stored)} calibrations in {calibration.folder()}" if stored else "ceilings none measured yet")
    for variable in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "NVIDIA_TF32_OVERRIDE", "CUDA_LAUNCH_BLOCKING"):
        if variable in os.environ:
            print(f"set      {variable}={os.environ[variable]} (it changes what is measured, and is recorded)")
