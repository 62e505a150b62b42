"""Steps that were to be compiled and were not. Steps made by hand."""

from __future__ import annotations

import pytest
from explained import COPY, compiled, facts, findings, found, near, xla
from msgspec.structs import replace
from synthetic import (
    LAYER,
    NORM,
    UNFUSED_NORM,
    Row,
    instead,
    step,
)

from roofline.analysis.analysis import analyze
from roofline.comparison.causes.order import causes
from roofline.core.framework import written_in
from roofline.core.schema import Compilation

MUL = Row("multiply_broadcast", "pointwise", 40, bytes=0.4e6)


def test_a_flag_that_did_not_reach_the_model() -> None:
    meant = Compilation(compiler="torch.compile", graphs=0)
    a = step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM), backend="torch-compile", compilation=meant)
    b = step(backend="jax")
    b = replace(b, profiled=replace(b.profiled, mechanism="xla-thunk"))
    assert findings(a, b)[0].rule == "jit-not-in-effect"
    assert findings(replace(a, mode="generate"), replace(b, mode="generate"))[0].rule == "compiled-not-used"


def test_jit_that_fell_back_to_a_graph_of_tensorflow() -> None:
    a = step(
        instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM), backend="keras-tensorflow", switches={"jit": "on"}
    )
    a = replace(a, profiled=replace(a.profiled, mechanism="tensorflow-graph"))
    b = step(backend="keras-jax", host=2, switches={"jit": "on"})
    b = replace(b, profiled=replace(b.profiled, mechanism="xla-thunk"))
    assert next(iter(found(a, b))) == "jit-not-in-effect"


def test_where_neither_was_compiled_that_is_not_the_difference() -> None:
    a = step(instead(LAYER * 4, NORM.name, UNFUSED_NORM), backend="torch-compile", compilation=compiled(0, 0))
    assert set(found(a, step(backend="torch-compile", compilation=compiled(0, 0)))) == {"fusion"}
    assert "jit-not-in-effect" not in found(a, step())


def test_a_program_for_each_op_is_a_step_that_is_not_compiled() -> None:
    told = found(xla(28.0, host=50), xla(1.0))
    assert {rule: finding.seconds for rule, finding in told.items()} == {"jit-not-in-effect": near(28 * 40)}
    assert told["jit-not-in-effect"].text.startswith("most of the step of jax (A) was not compiled")


def test_copies_of_a_step_op_by_op_are_not_compiling_it() -> None:
    rows = tuple(one for row in LAYER * 4 for one in ((COPY, row) if row.name == NORM.name else (row,)))
    told = found(xla(32.0, rows), xla(1.0))
    assert {rule: finding.seconds for rule, finding in told.items()} == {"jit-not-in-effect": near(4 * (COPY.own + 10))}
    assert set(found(xla(1.0, rows), xla(1.0))) == {"layout"}


def test_what_only_a_step_op_by_op_has_and_its_page_faults_are_not_compiling_it() -> None:
    # 4 multiplications of 40 us that one program has inside of others, and 3 ms of page faults for all results
    rows = tuple(one for row in LAYER * 4 for one in ((MUL, row) if row.name == NORM.name else (row,)))
    faults = {"page_faults_per_step": 4000.0, "system_seconds_per_step": 3e-3}
    none = {"page_faults_per_step": 0.0, "system_seconds_per_step": 0.0}
    a, b = xla(32.0, rows, extra_gap=3000), xla(1.0)
    told = found(replace(a, conditions={**a.conditions, **faults}), replace(b, conditions={**b.conditions, **none}))
    assert {rule: finding.seconds for rule, finding in told.items()} == {
        "jit-not-in-effect": near(4 * (40 + 10) + 3000)
    }
    # Of two programs the one of which does it is no such step: that is work that the other does not do.
    assert found(xla(1.0, rows), xla(1.0))["more-work"].seconds == near(4 * (40 + 10))


@pytest.mark.parametrize(
    ("versions", "advised"),
    [
        ({"jax": "0.10.2", "jaxlib": "0.10.2"}, "jax.jit"),
        ({"keras": "3.12.0", "jax": "0.10.2"}, "flag"),
        ({"tf_keras": "2.21.0", "tensorflow": "2.21.0"}, "flag"),
        ({"torch": "2.13.0"}, "flag"),
    ],
)
def test_jax_has_no_flag_to_check(versions: dict[str, str], advised: str) -> None:
    slower = facts(run_more=analyze(step(versions=versions)))
    assert advised in causes()["jit-not-in-effect"].advised(slower)


@pytest.mark.parametrize(("library", "advised"), [(None, "jax.jit"), ("keras", "flag")])
def test_what_the_backend_says_goes_before_the_versions(library: str | None, advised: str) -> None:
    """tf_keras is installed beside, and of a framework that no list names the versions would tell nothing."""
    run = step(versions={"tf_keras": "2.21.0", "torch": "2.13.0"}, framework="jax", written_in=library)
    assert advised in causes()["jit-not-in-effect"].advised(facts(run_more=analyze(run)))


@pytest.mark.parametrize("library", ["keras", "tf_keras"])
def test_a_step_of_the_users_own_has_no_flag_of_ours(library: str) -> None:
    for model, advised in (("mine.py:train", "run_eagerly=True, compile the model with jit_compile"), ("bert", "flag")):
        run = step(model=model, versions={library: "3.12.0", "jax": "0.10.2"})
        assert advised in causes()["jit-not-in-effect"].advised(facts(run_more=analyze(run)))


def test_a_trace_without_versions_is_written_in_its_framework() -> None:
    assert written_in(step(backend="jax", versions={})) == "jax"
