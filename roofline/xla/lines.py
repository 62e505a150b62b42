"""Name the line of the user's program that asked for an optimised instruction, by the stack that its metadata keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from roofline.recording.source_lines import SourceFiles
from roofline.xla import names
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.schedule import inside


def by_stack() -> Callable[[Module, Instruction], str | None]:
    """Return what names the line of an instruction of a program that this process traced."""
    return partial(_line, files=SourceFiles())


def _line(module: Module, instruction: Instruction, files: SourceFiles) -> str | None:
    """Name the innermost line of the user's of an instruction's products, else its own, else of what is fused in it."""
    products = (product.instruction for product in names.products(module, instruction))
    asking = (*products, instruction, *inside(instruction))
    stacks = (stack(module, inner) for inner in asking)
    return next((line for frames in stacks for place in frames if (line := files.line(*place))), None)


def stack(module: Module, instruction: Instruction) -> Iterator[tuple[str, int]]:
    """Yield file and line of each frame that called for an instruction, the innermost first.

    Frames that point nowhere, or at those that they are called by, end it: a program may come from anywhere.
    """
    metadata, index = instruction.message.metadata, module.frames
    if metadata.source_file:
        yield metadata.source_file, metadata.source_line
    number, met = metadata.stack_frame_id, set[int]()
    while index is not None and 0 < number <= len(index.stack_frames) and number not in met:
        met.add(number)
        frame = index.stack_frames[number - 1]
        if not 0 < frame.file_location_id <= len(index.file_locations):
            return
        location = index.file_locations[frame.file_location_id - 1]
        if not 0 < location.file_name_id <= len(index.file_names):
            return
        yield index.file_names[location.file_name_id - 1], location.line
        number = frame.parent_frame_id
