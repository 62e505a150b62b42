"""Ask NVIDIA's management library about a GPU: clocks, power, throttling, driver."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType, TracebackType
from typing import Any

from roofline.core.numerals import whole

# Bit of the throttle (clock event) reasons -> what it means.
_REASONS = {
    "GpuIdle": "idle",
    "ApplicationsClocksSetting": "application clocks",
    "SwPowerCap": "power cap",
    "HwSlowdown": "hardware slowdown",
    "SyncBoost": "sync boost",
    "SwThermalSlowdown": "thermal (software)",
    "HwThermalSlowdown": "thermal (hardware)",
    "HwPowerBrakeSlowdown": "power brake",
    "DisplayClockSetting": "display clocks",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Hold the state of a GPU at one moment. Units: byte, Hz, W. None: the driver does not tell.

    throttle: the reasons, in words, why the clock is below its highest; empty if it is not.
    """

    index: int
    name: str
    memory: float | None = None
    sm_clock: float | None = None
    sm_clock_max: float | None = None
    power: float | None = None
    power_cap: float | None = None
    throttle: tuple[str, ...] = ()
    driver: str | None = None
    cuda: str | None = None


@contextmanager
def _library() -> Iterator[ModuleType | str]:
    """Initialise the library and yield it, or the sentence that says why there is none."""
    try:
        import pynvml
    except ImportError:
        yield "The package nvidia-ml-py is not installed, so NVIDIA GPUs are not looked for."
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        yield f"NVIDIA's management library cannot be used ({error}); is the driver installed?"
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def unavailable() -> str | None:
    """Explain in a sentence why the driver shows no NVIDIA GPU; None if it shows one."""
    with _library() as nvml:
        if isinstance(nvml, str):
            return nvml
        count = _ask(nvml, nvml.nvmlDeviceGetCount)
        return None if count else "The NVIDIA driver sees no GPU."


def snapshots() -> tuple[Snapshot, ...]:
    """Describe all GPUs that the driver sees; empty where there is none (`unavailable` says why)."""
    with _library() as nvml:
        if isinstance(nvml, str):
            return ()
        states = (_snapshot(nvml, index) for index in range(_ask(nvml, nvml.nvmlDeviceGetCount) or 0))
        return tuple(snapshot for snapshot in states if snapshot is not None)


def snapshot(index: int = 0) -> Snapshot | None:
    """Describe GPU number `index` in the driver's order; None where there is none (`unavailable` says why)."""
    with _library() as nvml:
        return None if isinstance(nvml, str) else _snapshot(nvml, index)


def computing_processes(index: int = 0) -> frozenset[int] | None:
    """List the numbers of the processes that compute on GPU `index` of the driver; None where it does not tell."""
    with _library() as nvml:
        handle = None if isinstance(nvml, str) else _ask(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
        return None if isinstance(nvml, str) or handle is None else _running(nvml, handle)


def _running(nvml: ModuleType, handle: Any) -> frozenset[int] | None:
    running = _ask(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    return None if running is None else frozenset(process.pid for process in running)


def is_shared(index: int = 0) -> bool | None:
    """Tell whether this process, which computes on GPU `index`, shares it with others than its parents.

    None where it is not known: without a driver, and where the driver names no process or, in a container, gives their
    numbers outside of it, so that this process is not among them.
    """
    return _is_shared(computing_processes(index))


def _is_shared(running: frozenset[int] | None) -> bool | None:
    return None if running is None or os.getpid() not in running else bool(running - _own_processes())


def is_free(index: int = 0) -> bool:
    """Tell whether the driver names no process on GPU `index` but this one and its parents."""
    running = computing_processes(index)
    return running is not None and not running - _own_processes()


def _own_processes() -> frozenset[int]:
    """List this process and its parents, which wait for it."""
    import psutil

    with suppress(psutil.Error):
        return frozenset((os.getpid(), *(process.pid for process in psutil.Process().parents())))
    return frozenset((os.getpid(),))


def visible_index() -> int:
    """Return the driver's number of the GPU that CUDA calls number 0.

    From CUDA_VISIBLE_DEVICES where that begins with a number; the driver counts by bus, so on machines with
    different GPUs this holds only with CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    return whole(first) or 0


@dataclass(frozen=True, slots=True)
class EnergyCounter:
    """Count the energy of a GPU. nvml, handle: the library and its GPU, None where nothing can be told."""

    nvml: ModuleType | None = None
    handle: Any = None

    def joules(self) -> float | None:
        """Read what the GPU has used since the driver was loaded [J]; None before Volta."""
        if self.nvml is None:
            return None
        return _scaled(_ask(self.nvml, self.nvml.nvmlDeviceGetTotalEnergyConsumption, self.handle), 1e-3)

    def is_shared(self) -> bool | None:
        """Tell whether other processes than this one and its parents use the GPU; None where that is not known."""
        return None if self.nvml is None else _is_shared(_running(self.nvml, self.handle))


@contextmanager
def energy_counter() -> Iterator[EnergyCounter]:
    """Yield the counter of the GPU that CUDA calls number 0.

    It tells nothing where there is no driver, where the card is split (MIG), as the counter is that of the whole, and
    where CUDA_VISIBLE_DEVICES names it in another way than by number or UUID.
    """
    with _library() as nvml:
        if isinstance(nvml, str) or (handle := _visible(nvml)) is None or _is_split(nvml, handle):
            yield EnergyCounter()
        else:
            yield EnergyCounter(nvml, handle)


def _visible(nvml: ModuleType) -> Any:
    """Return the library's handle of the GPU that CUDA calls number 0; None where it is not known which that is."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    if first.startswith("GPU-"):
        return _ask(nvml, nvml.nvmlDeviceGetHandleByUUID, first)
    if first and whole(first) is None:
        return None
    return _ask(nvml, nvml.nvmlDeviceGetHandleByIndex, visible_index())


def _is_split(nvml: ModuleType, handle: Any) -> bool:
    """Tell whether a GPU is split into instances (MIG); a card that cannot be split does not answer."""
    modes = _ask(nvml, nvml.nvmlDeviceGetMigMode, handle)
    return modes is not None and modes[0] != 0


def _ask(nvml: ModuleType, call: Callable[..., Any], *arguments: Any) -> Any:
    """Make a call of the library; None if this GPU, driver or virtual machine does not answer it."""
    try:
        answer = call(*arguments)
    except nvml.NVMLError:
        return None
    return answer.decode() if isinstance(answer, bytes) else answer


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _snapshot(nvml: ModuleType, index: int) -> Snapshot | None:
    handle = _ask(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
    if handle is None:
        return None
    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    version = _ask(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
    return Snapshot(
        index=index,
        name=_ask(nvml, nvml.nvmlDeviceGetName, handle) or "NVIDIA GPU",
        memory=None if memory is None else float(memory.total),
        sm_clock=_scaled(_ask(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM), 1e6),
        sm_clock_max=_scaled(_ask(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM), 1e6),
        power=_scaled(_ask(nvml, nvml.nvmlDeviceGetPowerUsage, handle), 1e-3),
        power_cap=_scaled(_ask(nvml, nvml.nvmlDeviceGetEnforcedPowerLimit, handle), 1e-3),
        throttle=_throttle(nvml, handle),
        driver=_ask(nvml, nvml.nvmlSystemGetDriverVersion),
        cuda=None if version is None else f"{version // 1000}.{version % 1000 // 10}",
    )


def _throttle(nvml: ModuleType, handle: Any) -> tuple[str, ...]:
    # Renamed by NVIDIA from "throttle reasons" to "event reasons"; old drivers answer the old call only.
    for call in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
        bits = _ask(nvml, getattr(nvml, call), handle) if hasattr(nvml, call) else None
        if bits is not None:
            return throttle_words(nvml, bits)
    return ()


def throttle_words(nvml: ModuleType, bits: int) -> tuple[str, ...]:
    """Name the reasons whose bits are set, in words."""
    masks = {word: getattr(nvml, f"nvmlClocksEventReason{name}", 0) for name, word in _REASONS.items()}
    return tuple(word for word, mask in masks.items() if bits & mask)


@dataclass(slots=True)
class Sampler:
    """Sample clock and throttling of one GPU in a thread while it is entered, at least once.

    `clocks`: SM clocks [Hz]; `reasons`: number of samples by throttle reason, only those with the clock below the
    card's highest: drivers also name a reason at the highest clock. Both stay empty where there is no driver. Only
    reads; costs two calls of the library per `interval` [s].
    """

    index: int = 0
    interval: float = 0.1
    clocks: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Sampler:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="roofline-nvml", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        with _library() as nvml:
            handle = None if isinstance(nvml, str) else _ask(nvml, nvml.nvmlDeviceGetHandleByIndex, self.index)
            if isinstance(nvml, str) or handle is None:
                return
            highest = _ask(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM)
            while not self._stop.wait(self.interval):
                self._sample(nvml, handle, highest)
            if not self.clocks:  # a run shorter than the interval
                self._sample(nvml, handle, highest)

    def _sample(self, nvml: ModuleType, handle: Any, highest: float | None) -> None:
        clock = _ask(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM)
        if clock is not None:
            self.clocks.append(clock * 1e6)
        if clock is None or highest is None or clock < highest:
            self.reasons.update(_throttle(nvml, handle))
