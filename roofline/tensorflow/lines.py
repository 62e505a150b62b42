"""Name the line of the user's program that asked for a node: TensorFlow keeps where each op of a function was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework.errors_impl import NotFoundError

from roofline.recording.source_lines import SourceFiles
from roofline.tensorflow.count import Line
from roofline.tensorflow.graphs import ARGUMENTS, is_eager
from roofline.tensorflow.scopes import path


def by_traceback(function_graphs: Iterable[Any]) -> Line:
    """Return what names the lines of the nodes of functions that ran. function_graphs: as TensorFlow showed them."""
    return by_name(_tracebacks([graphs.pre_optimization_graph for graphs in function_graphs], SourceFiles()))


def by_name(lines: Iterable[tuple[str, str | None]]) -> Line:
    """Return what names the line of a node by those of the program's own. lines: (name, line) of these.

    What grappler made of a node, and its gradient, are called below it, so they have its line; of a gradient that is
    called otherwise it is the line that asked for gradients. Where nodes of one name are of different lines, none is
    known.
    """
    known: dict[tuple[bool, tuple[str, ...]], str | None] = {}
    for name, line in lines:
        key = path(name)
        known[key] = line if known.get(key, line) == line else None

    def line_of(name: str) -> str | None:
        is_gradient, parts = path(name)
        # A forward node of the gradient's own name is another one.
        above = [(False, parts[:length]) for length in range(len(parts) - is_gradient, 0, -1)]
        keys = [*above, (True, parts)] if is_gradient else above
        return next((known[key] for key in keys if key in known), None)

    return line_of


def _tracebacks(graphs: Sequence[Any], files: SourceFiles) -> Iterator[tuple[str, str | None]]:
    """Yield the name of each node of the functions of which graphs are, and its line.

    Other functions of this process have nodes of the same names. A graph holds the functions that it calls by their
    names, and itself has none: it is of the function that has its nodes, and one for each of its arguments.
    """
    eager_context = context.context()
    called = {function.signature.name for graph in graphs for function in graph.library.function}
    shown = [
        ({node.name for node in graph.node if node.op not in ARGUMENTS}, sum(node.op == "_Arg" for node in graph.node))
        for graph in graphs
        if not is_eager(graph)
    ]
    for function in eager_context.list_function_names():
        try:
            info = eager_context.get_graph_debug_info(function)
        except NotFoundError:  # a function of which nothing is left has been dropped since they were listed
            continue
        names = info.name_to_trace_id.keys()
        is_shown = any(body <= names and len(names) == len(body) + arguments for body, arguments in shown)
        if function not in called and not is_shown:
            continue
        for name, number in info.name_to_trace_id.items():
            frames = (info.frames_by_id[frame] for frame in reversed(info.traces_by_id[number].frame_id))
            places = ((info.files[frame.file_index], frame.line) for frame in frames)
            yield name, next((line for place in places if (line := files.line(*place))), None)
