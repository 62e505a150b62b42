"""Compiled code that a backend does not see. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import compiled as graphs
from explained import found, near
from synthetic import GELU, LAYER, LINEAR, step

from roofline.analysis.analysis import analyze
from roofline.core.schema import Profile
from roofline.renderers._facts import host
from roofline.renderers._words import verdict

VECTOR = tuple(row for row in LAYER * 4 if row.name != LINEAR.name)


def compiled(inside: float, outside: float = 0.0) -> Profile:
    """The products of the layers; all else takes so long in compiled code [µs], which looks like the host's time."""
    shares = {"host dispatch: compiled wrapper": inside / (inside + outside), "host dispatch: Python": 0.0}
    shares["host dispatch: Python"] = 1 - shares["host dispatch: compiled wrapper"]
    rows = tuple(row for row in LAYER * 4 if row.name == LINEAR.name)
    return step(rows, host=0, extra_gap=inside + outside, causes=shares, flags=("compiled-code",))


def test_what_one_run_has_in_compiled_code_is_no_work_that_it_lacks() -> None:
    seen = sum(row.own for row in VECTOR)
    told = found(step(host=0), compiled(inside=300))
    assert set(told) == {"compiled-code"}
    assert told["compiled-code"].seconds == near(seen - 300)
    launches = len(VECTOR)
    assert f"{launches} launches (" in told["compiled-code"].text
    assert "has compiled code, whose kernels this backend does not see" in told["compiled-code"].text
    assert told["compiled-code"].label == f"compiled code in one run, {launches} launches one by one in the other"
    assert told["compiled-code"].advice.startswith("compile it here, too (torch.compile)")
    # Where it is the slower one, nothing is to be compiled there.
    told = found(step(host=0), compiled(inside=seen + 500))
    assert told["compiled-code"].seconds == near(-500)
    assert f"in whose place torch (A) runs {launches} launches" in told["compiled-code"].text
    assert told["compiled-code"].advice.startswith("profile it with --backend torch-compile")


def test_of_two_runs_with_compiled_code_or_without_any_nothing_is_said() -> None:
    more = (*LAYER, change(GELU, name="aten::mish")) * 4
    assert "compiled-code" not in found(step(more), step())
    both = [step(rows, flags=("compiled-code",)) for rows in (more, LAYER * 4)]
    assert "compiled-code" not in found(both[0], both[1])


def test_a_run_that_shows_its_kernels_beside_one_that_does_not() -> None:
    """Both are compiled: what one backend sees is nothing that the other run does not do."""
    seen = sum(row.own for row in VECTOR)
    told = found(step(host=0, backend="torch-compile", compilation=graphs(1, 0)), compiled(inside=300))
    assert set(told) == {"compiled-code"}
    assert told["compiled-code"].seconds == near(seen - 300)
    assert "more on kernels that are seen" in told["compiled-code"].text
    assert told["compiled-code"].advice.startswith("profile torch with --backend torch-compile")


def test_the_time_of_compiled_code_is_not_what_ops_cost_the_host() -> None:
    run = analyze(compiled(inside=3000, outside=300))
    assert host.told(run) == ""
    assert host.most(run) == "most of it in compiled code, whose kernels are not seen"
    assert "host time (most of it in compiled code, whose kernels are not seen)" in verdict(run, host.most(run))
    assert host.most(analyze(compiled(inside=300, outside=3000))) == ""
