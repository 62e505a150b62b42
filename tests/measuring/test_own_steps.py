"""Steps of the user's own: which are known here, and which a profile cannot have run."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from synthetic import step

from roofline.core.schema import Profile
from roofline.core.step import Workload
from roofline.errors import InputError
from roofline.measuring import own_steps
from roofline.recording.request import Request
from roofline.recording.user_step import digest

COMMAND = "roofline profile mine.py:loops --backend torch"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "mine.py"
    file.write_text("def loops():\n    return print\n")
    return file


def measured(file: Path, command: str = COMMAND) -> tuple[Request, Profile]:
    """What was asked for, and the profile that came of it."""
    sources = {file.name: digest(file)}
    request = Request(
        backend="torch", workload=Workload(model="mine:loops", batch=None), file=str(file), function="loops", threads=1
    )
    own_steps.remember(request, command, sources)
    return request, replace(step(), model="mine:loops", command=command, sources=sources, batch=7, mode="train")


def test_what_was_measured_here_is_asked_for_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    request, profile = measured(Path("mine.py"))
    found = own_steps.recall(profile)
    # as it was asked for, whatever the step turned out to be, and from whichever folder
    assert found == replace(request, file=str(file))


def test_a_profile_from_elsewhere_runs_nothing(file: Path) -> None:
    _, profile = measured(file)
    for stranger in (
        replace(profile, command="roofline profile mine.py:evil --backend torch"),
        replace(profile, sources={"mine.py": "0" * 64}),
        replace(profile, sources={"other.py": profile.sources["mine.py"]}),
        replace(profile, sources={"../../etc/mine.py": profile.sources["mine.py"]}),
        replace(profile, sources={}),
    ):
        with pytest.raises(InputError, match="was not measured on this machine, and such a file is not run"):
            own_steps.recall(stranger)


def test_a_file_that_changed_is_not_run(file: Path) -> None:
    _, profile = measured(file)
    file.write_text(file.read_text() + "# changed\n")
    with pytest.raises(InputError, match=r"mine\.py has changed since this was measured"):
        own_steps.recall(profile)
    file.unlink()
    with pytest.raises(InputError, match=r"mine\.py is no longer where it was measured"):
        own_steps.recall(profile)


def test_what_is_damaged_is_not_known(file: Path) -> None:
    _, profile = measured(file)
    for kept in (file.parent / "cache" / "steps").iterdir():
        kept.write_text("{")
    with pytest.raises(InputError, match="not measured on this machine"):
        own_steps.recall(profile)


def test_a_cache_that_cannot_be_written_costs_no_measurement(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFLINE_CACHE", str(file))  # which is no folder
    measured(file)


def test_the_oldest_are_forgotten(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_steps, "_MOST", 2)
    for number in range(4):
        _, profile = measured(file, f"{COMMAND} --steps {number}")
    assert len(list((file.parent / "cache" / "steps").iterdir())) == 2
    assert own_steps.recall(profile).function == "loops"
