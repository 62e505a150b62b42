"""The records of rocprofv3's JSON as structs: what is read of each, and how a list of them is decoded.

The fields are those of rocprofiler-sdk's `buffer_tracing.h`, as its `rocprofv3-schema.json` writes them. What is not
named here is skipped, and a record that does not fit is left out alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from roofline.traces.kineto.events import decoded

T = TypeVar("T")

#: What msgspec raises of a text that is no JSON, or no JSON of the type asked for.
BROKEN = (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError, ValueError)

_NONE = msgspec.Raw(b"")
_TOGETHER = 1 << 15  # records that are decoded at a time
#: What stands behind the demangled name of a kernel's code.
_SUFFIX = re.compile(r"(\.kd| \[clone [^\]]*\])$")
_LONGEST = 64  # characters of such a suffix


class Handle(msgspec.Struct, frozen=True, gc=False):
    """Hold an opaque number."""

    handle: int = -1


class Correlation(msgspec.Struct, frozen=True, gc=False):
    """Hold the number of a call, which what it launched has too."""

    internal: int = -1


class Size(msgspec.Struct, frozen=True, gc=False):
    """Hold the extents of a grid or of a workgroup, both in work-items."""

    x: int = 0
    y: int = 0
    z: int = 0


class Dispatch(msgspec.Struct, gc=False):
    """Hold what was dispatched, and where to."""

    kernel_id: int
    agent_id: Handle = Handle()
    queue_id: Handle = Handle()
    workgroup_size: Size = Size()
    grid_size: Size = Size()


class Kernel(msgspec.Struct, gc=False):
    """Hold a kernel that ran. Times in ns. stream_id: older files have none."""

    start_timestamp: int
    end_timestamp: int
    dispatch_info: Dispatch
    correlation_id: Correlation = Correlation()
    stream_id: Handle | None = None


class Copy(msgspec.Struct, gc=False):
    """Hold a copy that an engine ran. Times in ns."""

    start_timestamp: int
    end_timestamp: int
    kind: int = -1
    operation: int = -1
    src_agent_id: Handle = Handle()
    dst_agent_id: Handle = Handle()
    bytes: int | None = None
    correlation_id: Correlation = Correlation()
    stream_id: Handle | None = None


class Call(msgspec.Struct, gc=False):
    """Hold a call of HIP or HSA, or a range or a mark of roctx. Times in ns."""

    start_timestamp: int
    end_timestamp: int
    kind: int = -1
    operation: int = -1
    thread_id: int = -1
    correlation_id: Correlation = Correlation()


class Symbol(msgspec.Struct, gc=False):
    """Hold the names of a kernel."""

    kernel_id: int
    kernel_name: str = ""
    demangled_kernel_name: str = ""
    formatted_kernel_name: str = ""

    @property
    def name(self) -> str:
        """Return the name as the program's source has it, with its arguments; "" where there is none."""
        name = self.demangled_kernel_name or self.formatted_kernel_name or self.kernel_name
        return name[:-_LONGEST] + _SUFFIX.sub("", name[-_LONGEST:])


class _Bank(msgspec.Struct, gc=False):
    heap_type: int = 0
    size_in_bytes: int = 0


class Agent(msgspec.Struct, gc=False):
    """Hold a CPU or a GPU of the machine. logical_node_type_id: its number among those of its type."""

    id: Handle
    type: int = 0
    gpu_index: int = -1
    logical_node_type_id: int = -1
    name: str = ""
    product_name: str = ""
    mem_banks: list[_Bank] = []

    @property
    def is_gpu(self) -> bool:
        """Tell whether it is a GPU."""
        return self.type == 2

    @property
    def label(self) -> str:
        """Return the GPU's number, as programs count them; its handle where it has none."""
        numbers = (self.gpu_index, self.logical_node_type_id)
        return next((str(number) for number in numbers if number >= 0), f"agent {self.id.handle}")

    @property
    def memory(self) -> int | None:
        """Return the size of its own memory [byte], public and private; None where it is not said."""
        return sum(bank.size_in_bytes for bank in self.mem_banks if bank.heap_type in (1, 2)) or None


class Kind(msgspec.Struct, gc=False):
    """Hold the names of the operations of a kind of records; `kind` is that of the kind itself."""

    kind: str = ""
    operations: list[str] = []


class Message(msgspec.Struct, gc=False):
    """Hold the text of a range or a mark. key: its correlation."""

    key: int
    value: str


class _Metadata(msgspec.Struct):
    pid: int = -1


class _Strings(msgspec.Struct):
    buffer_records: msgspec.Raw = _NONE
    marker_api: msgspec.Raw = _NONE


class _Buffers(msgspec.Struct):
    kernel_dispatch: msgspec.Raw = _NONE
    memory_copy: msgspec.Raw = _NONE
    hip_api: msgspec.Raw = _NONE
    hsa_api: msgspec.Raw = _NONE
    marker_api: msgspec.Raw = _NONE


class Process(msgspec.Struct):
    """Hold what one process recorded, its lists as text."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    agents: msgspec.Raw = _NONE
    strings: _Strings = msgspec.field(default_factory=_Strings)
    kernel_symbols: msgspec.Raw = _NONE
    buffer_records: _Buffers = msgspec.field(default_factory=_Buffers)


class File(msgspec.Struct):
    """Hold a whole file."""

    processes: list[Process] = msgspec.field(name="rocprofiler-sdk-tool")


class Lists:
    """Decode lists of records. damaged: how many of them, or whole lists, were left out so far."""

    def __init__(self) -> None:
        self.damaged = 0

    def texts(self, listed: msgspec.Raw) -> list[msgspec.Raw]:
        """Return the text of each record; none of a list that is absent."""
        if bytes(memoryview(listed)[:5]) in (b"", b"null"):
            return []
        try:
            return msgspec.json.decode(listed, type=list[msgspec.Raw])
        except BROKEN:
            self.damaged += 1
            return []

    def each(self, listed: msgspec.Raw, kind: type[T]) -> Iterator[T | None]:
        """Yield each record of a list, a few of them decoded at a time; None for one that does not fit."""
        texts = self.texts(listed)
        for first in range(0, len(texts), _TOGETHER):
            records = decoded(texts[first : first + _TOGETHER], kind)
            self.damaged += records.count(None)
            yield from records
