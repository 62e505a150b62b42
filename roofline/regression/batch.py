"""Judge several profiles by one baseline: each by itself, so that one that cannot be judged hides no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roofline.core.schema import Profile
from roofline.errors import GateError, RooflineError, defect, from_exit_code
from roofline.regression.check import Result
from roofline.repr_mixin import ReprMixin

_FEW = 8  # profiles that an error names


@dataclass(frozen=True, slots=True)
class Judged:
    """Hold the judgement of a profile: its file, and the result of its gates, or the error."""

    file: str
    result: Result | None = None
    error: RooflineError | None = None

    @property
    def code(self) -> int:
        """Return the exit code of this profile alone."""
        if self.error is not None:
            return self.error.exit_code
        return GateError.exit_code if self.result is not None and self.result.failed else 0


@dataclass(frozen=True, slots=True, repr=False)
class Judgement(ReprMixin):
    """Hold profiles judged by a baseline, in the order of the request; `passed` decides."""

    baseline: str
    profiles: tuple[Judged, ...]

    @property
    def passed(self) -> bool:
        """True if all gates of all profiles passed; False also where one could not be judged."""
        return self.error is None

    @property
    def error(self) -> RooflineError | None:
        """The error of the command line: the worst of the profiles, None where all passed."""
        return worst(self.profiles, self.baseline)


def judge(files: Sequence[str], load: Callable[[str], Profile], check: Callable[[Profile], Result]) -> list[Judged]:
    """Judge each file, in their order; check: judges a profile by the baseline."""
    results = []
    for file in files:
        try:
            results.append(Judged(file, result=check(load(file))))
        except RooflineError as error:
            results.append(Judged(file, error=error))
        except Exception as error:  # it must not hide the others
            results.append(Judged(file, error=defect(error)))
    return results


def worst(judged: Sequence[Judged], baseline: str) -> RooflineError | None:
    """Choose the error of several profiles, None where all passed: failed gates come before unusable profiles."""
    failed = [profile for profile in judged if profile.result is not None and profile.result.failed]
    unjudged = [profile for profile in judged if profile.error is not None]
    if len(judged) == 1:
        return (
            GateError(f"{judged[0].file} is worse than {baseline}: {_measures(judged[0])}.")
            if failed
            else judged[0].error
        )
    parts = []
    if failed:
        parts.append(
            f"{len(failed)} of {len(judged)} profiles {_are(failed)} worse than {baseline}: {_list_files(failed)}"
        )
    if unjudged:
        of = "" if failed else f" of {len(judged)} profiles"
        parts.append(f"{len(unjudged)}{of} cannot be judged: {_list_files(unjudged)}")
    if not parts:
        return None
    message = f"{'; '.join(parts)}."
    return GateError(message) if failed else from_exit_code(min(profile.code for profile in unjudged), message)


def _measures(judged: Judged) -> str:
    """Name the measures that grew too much: "time, bytes"."""
    names = [gate.measure for gate in judged.result.failed] if judged.result else []
    return ", ".join(dict.fromkeys(names))


def _are(judged: Sequence[Judged]) -> str:
    return "is" if len(judged) == 1 else "are"


def _list_files(judged: Sequence[Judged]) -> str:
    listing = [
        f"{profile.file} ({_measures(profile)})" if profile.result else profile.file for profile in judged[:_FEW]
    ]
    return ", ".join([*listing, f"{len(judged) - _FEW} more"] if len(judged) > _FEW else listing)
