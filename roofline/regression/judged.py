"""Several profiles judged by one baseline: each by itself, so that one that cannot be judged hides no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roofline.core.schema import Profile
from roofline.errors import GateError, RooflineError, from_exit_code
from roofline.regression.check import Result
from roofline.shown import Shown

_FEW = 8  # profiles that an error names


@dataclass(frozen=True, slots=True)
class Judged:
    """One profile: its file, and how its gates ended, or why it could not be judged."""

    file: str
    result: Result | None = None
    error: RooflineError | None = None

    @property
    def code(self) -> int:
        """The exit code of this profile alone."""
        if self.error is not None:
            return self.error.exit_code
        return GateError.exit_code if self.result is not None and self.result.failed else 0


@dataclass(frozen=True, slots=True, repr=False)
class Judgement(Shown):
    """Profiles judged by a baseline, in the order given; `passed` decides."""

    baseline: str
    profiles: tuple[Judged, ...]

    @property
    def passed(self) -> bool:
        """Whether all gates of all profiles passed; False also where one could not be judged."""
        return self.error is None

    @property
    def error(self) -> RooflineError | None:
        """What the command line would end with: the worst of the profiles, None where all passed."""
        return worst(self.profiles, self.baseline)


def judge(files: Sequence[str], load: Callable[[str], Profile], check: Callable[[Profile], Result]) -> list[Judged]:
    """Each file judged, in the order given; check: holds a profile against the baseline."""
    found = []
    for file in files:
        try:
            found.append(Judged(file, result=check(load(file))))
        except RooflineError as error:
            found.append(Judged(file, error=error))
    return found


def worst(judged: Sequence[Judged], baseline: str) -> RooflineError | None:
    """What to end with, None where all passed: a gate that failed before what cannot be used or judged."""
    failed = [each for each in judged if each.result is not None and each.result.failed]
    unjudged = [each for each in judged if each.error is not None]
    if len(judged) == 1:
        return (
            GateError(f"{judged[0].file} is worse than {baseline}: {_measures(judged[0])}.")
            if failed
            else judged[0].error
        )
    parts = []
    if failed:
        parts.append(f"{len(failed)} of {len(judged)} profiles {_are(failed)} worse than {baseline}: {_listed(failed)}")
    if unjudged:
        of = "" if failed else f" of {len(judged)} profiles"
        parts.append(f"{len(unjudged)}{of} cannot be judged: {_listed(unjudged)}")
    if not parts:
        return None
    message = f"{'; '.join(parts)}."
    return GateError(message) if failed else from_exit_code(min(each.code for each in unjudged), message)


def _measures(judged: Judged) -> str:
    """What grew too much: "time, bytes"."""
    names = [gate.measure for gate in judged.result.failed] if judged.result else []
    return ", ".join(dict.fromkeys(names))


def _are(judged: Sequence[Judged]) -> str:
    return "is" if len(judged) == 1 else "are"


def _listed(judged: Sequence[Judged]) -> str:
    told = [f"{each.file} ({_measures(each)})" if each.result else each.file for each in judged[:_FEW]]
    return ", ".join([*told, f"{len(judged) - _FEW} more"] if len(judged) > _FEW else told)
