"""What all tests share: golden files that can be rewritten, traces made and recorded, terminals of 100 columns."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).resolve().parent
# Recorded by others and not part of the repository: $ROOFLINE_TRACES, or beside the checkout.
RECORDED = Path(os.environ.get("ROOFLINE_TRACES", HERE.parents[1] / "shared" / "traces"))
sys.path.append(str(HERE))  # `import handmade`

# Else Python prints what nobody handles, among what is printed by a command that runs in this process.
logging.getLogger().addHandler(logging.NullHandler())

import parallel
from parallel import pytest_ignore_collect, pytest_xdist_make_scheduler  # noqa: F401 - hooks

parallel.set_variables()

#: Examples of a property by `--hypothesis-profile`: "few" is `make quick`, "some" `make test`; `make test-all` has all.
EXAMPLES = {"few": 5, "some": 10}
# How long an example takes says something about the machine, not about the code.
settings.register_profile("all", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
for name, number in EXAMPLES.items():
    # The same ones each time: what a change broke must not depend on the day. test-all looks at others.
    settings.register_profile(name, settings.get_profile("all"), max_examples=number, derandomize=True)
settings.load_profile("some")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what is rendered to tests/golden")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Frameworks are millions of objects that stay: the collector need not look at them again and again.

    Tests make few cycles. Looked for every 700 objects, as usual, they are a tenth of the time of those that only
    compute.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 100)
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _former_files_are_not_searched() -> None:
    """Keep what other files left out of the collections that measurements begin with: they took seconds each."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    parallel.mark_and_sort(items)
    most = EXAMPLES.get(settings.get_current_profile_name())
    if most is None:
        return
    for item in items:
        # A test that says how many examples it has says how many it has in all.
        own = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
        if own is not None and own.max_examples > most:
            item.obj._hypothesis_internal_use_settings = settings(own, max_examples=most)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A cache that holds a calibration made by hand: the user's own is neither read nor filled, nor measured for.

    On a GPU the tests measure against what was calibrated there.
    """
    from devices.calibrated import fill

    folder = tmp_path_factory.mktemp("cache")
    fill(folder)
    with pytest.MonkeyPatch.context() as patch:
        if request.config.getoption("markexpr") != "gpu":
            patch.setenv("ROOFLINE_CACHE", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def _terminal_of_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with tests/golden/NAME; --update-golden writes it instead: look at the diff."""

    def compare(name: str, text: str) -> None:
        file = HERE / "golden" / name
        if request.config.getoption("--update-golden"):
            file.write_text(text, encoding="utf-8")
        assert file.is_file(), f"no {file}: run pytest --update-golden and look at what it wrote"
        assert text == file.read_text(encoding="utf-8")

    return compare


def _maker(name):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / "data" / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def make_kineto():
    return _maker("make_kineto")


@pytest.fixture(scope="session")
def make_rocprof():
    return _maker("make_rocprof")


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
        make = _maker("make_kineto")
        cases = list(make.damaged(make.training(1).write()))
        metafunc.parametrize("damaged", cases, ids=[name for name, _ in cases])
