"""What all tests share: the hand-made profile, golden files that can be rewritten, terminals 100 columns wide."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
sys.path.append(str(HERE))  # `import handmade`

# How long an example takes says something about the machine, not about the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what is rendered to tests/golden")


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
