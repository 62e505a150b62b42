"""The generator of synthetic traces, and real traces where they are at hand."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# A shared machine may be slow; no test is about time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

TESTS = Path(__file__).resolve().parents[1]
# Recorded by others and not part of the repository: $ROOFLINE_TRACES, or beside the checkout.
RECORDED = Path(os.environ.get("ROOFLINE_TRACES", TESTS.parents[1] / "shared" / "traces"))


def _make_kineto():
    name = "make_kineto"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, TESTS / "data" / "make_kineto.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def make_kineto():
    return _make_kineto()


@pytest.fixture(scope="session")
def recorded():
    """The path of a recorded trace by its name; skips without it."""

    def find(name):
        path = RECORDED / name
        if not path.exists():
            pytest.skip(f"the recorded trace {name} is not at hand; set ROOFLINE_TRACES to its folder")
        return path

    return find


def pytest_generate_tests(metafunc):
    """A test that takes `damaged` runs once for each way to spoil the synthetic trace, as (name, bytes)."""
    if "damaged" in metafunc.fixturenames:
        make = _make_kineto()
        cases = list(make.damaged(make.training(1).write()))
        metafunc.parametrize("damaged", cases, ids=[name for name, _ in cases])
