"""Follow the steps of a running program: which boundary they have, which calls make up one, which are measured."""

from __future__ import annotations

import functools
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any

from greenlet import getcurrent, greenlet

from roofline.core.step import Mode, Step
from roofline.running.boundary import EMPTY, Boundary
from roofline.running.choice import MOST_CALLS, Choice
from roofline.running.identities import Identities
from roofline.running.imports import AfterImport
from roofline.running.measurement import Measurement
from roofline.running.periods import Period, Periods
from roofline.running.repeats import Repeats, Report, follow

#: In place of a boundary's rank, among the reports of a step: what was met in it. None repeats that.
_MET = -1


class Steps:
    """Take the reports of all boundaries, choose one, and have the measurement see the ends of its steps.

    A boundary is chosen when its calls repeat, unless one in front of it was seen or is expected. When one in front of
    it turns up later, or another call breaks the period, all begins anew. Once steps were measured, they stay what a
    step is; while this loop then rests, the `following` one takes the reports, too, and chooses for itself.
    """

    def __init__(
        self,
        boundaries: Sequence[Boundary],
        measurement: Measurement,
        imports: AfterImport,
        resting: tuple[Steps, ...] = (),
    ) -> None:
        """Resting: the loops before this one, the program's first one in front, whose measurement is given."""
        self._boundaries, self.imports = boundaries, imports
        self._resting, self._first = resting, resting[0] if resting else self
        self.measurement = measurement.another(self._say) if resting else measurement
        self.following: Steps | None = None
        #: Of the first loop: how many further ones may be measured.
        self._left = measurement.wanted.loops - 1
        self._thread = threading.get_ident()
        self._coroutine: greenlet = resting[0]._coroutine if resting else getcurrent()
        self._periods = [Periods() for _ in boundaries]
        #: For each boundary: (source, label) -> number of its ends.
        self._ends: list[Counter[tuple[Hashable, str]]] = [Counter() for _ in boundaries]
        #: Ranks of the boundaries that were seen or are expected.
        self._ranks: set[int] = set()
        #: Number of ends of each boundary when one that may cease was seen last.
        self._before: list[int] | None = None
        #: The models of the current step, by their `id`: (rank of who reported it, the model).
        self._models: dict[int, tuple[int, weakref.ref[Any]]] = {}
        #: Rank -> sizes of the step that it reported last.
        self._sizes: dict[int, Mapping[str, int]] = {}
        #: The reports of the current step, and of the last one. Steps that repeat it are followed by `_repeats`.
        self._reports: list[Report] = []
        self._last_reports: list[Report] = []
        self._repeats: Repeats | None = None
        self.choice: Choice | None = None
        self.closed = False
        #: What takes the hooks of the boundaries away, in the order in which they were made.
        self.removers: list[Callable[[], None]] = []
        #: What was called in other threads than the program's own: name -> number of calls.
        self.elsewhere: Counter[str] = Counter()

    @property
    def _is_here(self) -> bool:
        """True in the program's own thread, that of the recorder: in another one no coroutine is to be touched."""
        return threading.get_ident() == self._thread

    def watcher(self, rank: int) -> StepWatcher:
        """Make the watcher of a boundary."""
        return StepWatcher(self, rank)

    @property
    def called(self) -> Counter[str]:
        """Count what was called in the program's own thread: name -> number of calls."""
        called: Counter[str] = Counter()
        for ends in self._ends:
            for (_, label), number in ends.items():
                called[label] += number
        return called

    @property
    def listens(self) -> bool:
        """True while reports change something; not in what the measurement runs itself."""
        recording = self.measurement.running
        if self.closed or (recording is not None and recording.is_recorder):
            return False
        return self.following is None or self.following.listens

    @property
    def _looks_on(self) -> bool:
        """True if this loop was measured, and another one may be."""
        return bool(self.measurement.measured) and (self.following is not None or self._first._left > 0)

    @property
    def loops(self) -> tuple[Steps, ...]:
        """List this loop and those that ran while it rested."""
        return (self,) if self.following is None else (self, *self.following.loops)

    @property
    def measures(self) -> bool:
        """True while a step of this loop, or of one that follows, is recorded."""
        return any(loop.measurement.running is not None for loop in self.loops)

    def close(self) -> None:
        """Stop listening, at the end of the program or in another process."""
        self._look_again()
        self.closed = True
        if self.following is not None:
            self.following.close()
        if self.choice is not None:
            self.choice.seen = self._seen(self.choice)

    def remove_hooks(self) -> None:
        """Take the hooks of the boundaries away, the last one first: two may lie around one function."""
        while self.removers:
            with suppress(Exception):  # of a class of the program's: the others are taken away
                self.removers.pop()()

    def fail(self, error: Exception) -> None:
        """Give up all measuring, as something of ours has failed, and let the program run on."""
        if self._is_here:
            for loop in self.loops:
                loop._repeats = None  # making up for what was not done may be what has failed
            self.close()
        for loop in self.loops:
            loop.measurement.fail(error, here=self._is_here)

    def expect(self, rank: int) -> None:
        """Let the boundaries behind this one wait for it."""
        if not self.listens or not self._is_here:
            return
        self._look_again()
        if not self.measurement.settled:
            self._prefer(rank)
        elif self._looks_on and (further := self._further()) is not None:
            further.expect(rank)

    def met(self, label: str) -> None:
        """Note what makes the current step unlike others."""
        if self.choice is not None and self.listens and self._is_here:
            self._look_again()
            self._keep((_MET, None, label, None))
            self.choice.note(label, None)
            if self.choice.rests and self.following is not None:
                self.following.met(label)

    def ended(
        self,
        rank: int,
        source: Hashable,
        label: str,
        *,
        results: tuple[object, ...] = (),
        model: object = None,
        detail: Hashable = None,
        sizes: Mapping[str, int] = EMPTY,
        since: float | None = None,
    ) -> None:
        """Take the report of a boundary that something of its kind has ended, see `Watcher.ended`.

        Most reports are those of the step before, and each call of a function would cost the program a microsecond.
        """
        if since is None:
            since = perf_counter()
        try:
            repeats = self._repeats
            if repeats is not None:
                awaited = repeats.awaited
                # In the program's own coroutine: neither in the recorder's nor in another thread.
                if getcurrent() is self._coroutine and (rank, source, label, detail) == awaited.report:
                    if awaited.following is None:
                        self._end_repeat(repeats, results, since)
                        return
                    repeats.awaited = awaited.following
                    if self.measurement.running is not None:
                        repeats.choice.watching += perf_counter() - since
                    return
                if self._is_here and self.listens:
                    self._look_again()
            self._look_at(rank, source, label, results, model, detail, sizes, since)
        except Exception as error:
            self._first.fail(error)

    def _look_at(
        self,
        rank: int,
        source: Hashable,
        label: str,
        results: tuple[object, ...],
        model: object,
        detail: Hashable,
        sizes: Mapping[str, int],
        since: float,
    ) -> None:
        """Take a report that repeats none. since: when its hook began [s]."""
        if self.closed:
            return
        if not self._is_here:
            self.elsewhere[label] += 1
            return
        if not self.listens:
            return
        self._keep((rank, source, label, detail))
        self._ends[rank][source, label] += 1
        if self._boundaries[rank].may_cease:
            self._before = [ends.total() for ends in self._ends]
        elif self._before is not None:
            self._give_up_what_ceased(rank, self._before)
        if rank not in self._ranks or (self.choice is not None and rank < self.choice.rank):
            self._prefer(rank)
        if model is not None:
            self._models[id(model)] = (rank, weakref.ref(model))
        self._sizes[rank] = sizes
        choice = self.choice
        if choice is None:
            self._choose(self._periods[rank].add(source), rank, label, detail)
            return
        if rank != choice.rank:
            choice.note(label, detail)
            choice.watching += perf_counter() - since
        elif not self._take(choice, source, label, results, detail, since):
            self._begin_anew()
            self._choose(self._periods[rank].period, rank, label, detail)
            return
        if self._looks_on and len(choice.calls) > choice.room and choice.may_rest(label):
            further = self._further()
            if further is not None:
                further.ended(
                    rank, source, label, results=results, model=model, detail=detail, sizes=sizes, since=since
                )
            else:
                choice.rests = False

    def _keep(self, report: Report) -> None:
        """Keep a report of the current step."""
        if self.choice is not None and len(self._reports) < MOST_CALLS:
            self._reports.append(report)

    def _end_repeat(self, repeats: Repeats, results: tuple[object, ...], now: float) -> None:
        """Count a step that repeats the one before and ends now [s], and let the measurement see it."""
        choice = repeats.choice
        repeats.awaited = repeats.first
        choice.seen += 1
        measurement = self.measurement
        if measurement.running is not None:
            choice.time_step(now)
            try:
                measurement.step_ended(choice.seen, results, self._begin)
            finally:
                if measurement.running is None:
                    self._look_again()
        elif choice.seen + 1 >= repeats.due:
            self._look_again()
        choice.begin_step()

    def _may_repeat(self, choice: Choice) -> bool:
        """Tell whether steps may repeat the last one, which did so itself: no other thing is to be seen meanwhile."""
        ranks = {rank for rank, *_ in self._last_reports}
        return (
            len(self._last_reports) < MOST_CALLS
            and _MET not in ranks
            and choice.is_regular
            and getcurrent() is self._coroutine
            and (self._before is None or any(self._boundaries[rank].may_cease for rank in ranks))
            and (self.measurement.running is not None or choice.seen + 1 < self.measurement.due)
        )

    def _look_again(self) -> None:
        """Look at each report again, and make up for what was not done of those that repeated others."""
        repeats, self._repeats = self._repeats, None
        if repeats is None or repeats.choice is not self.choice:
            return
        choice, steps = repeats.choice, repeats.steps
        watching = choice.watching  # which has that of the reports below, while steps are measured
        for rank, source, label, _ in repeats.reports:
            self._ends[rank][source, label] += steps
        if steps and any(self._boundaries[rank].may_cease for rank, *_ in repeats.reports):
            self._before = [ends.total() for ends in self._ends]
        if steps:
            choice.label = repeats.reports[-1][2]
        choice.kinds.repeat(steps)
        if not self.measurement.settled:
            self._periods[choice.rank].repeat(steps)
        for rank, source, label, detail in repeats.reports[: repeats.awaited.place]:
            self._look_at(rank, source, label, (), None, detail, self._sizes[rank], perf_counter())
        choice.watching = watching

    def _take(
        self, choice: Choice, source: Hashable, label: str, results: tuple[object, ...], detail: Hashable, since: float
    ) -> bool:
        """Take what ended at the chosen boundary; return False if it breaks the period and nothing was measured."""
        if self.measurement.settled:
            is_part = choice.period.resume(source)
        elif self._periods[choice.rank].add(source) is choice.period:
            is_part = True
        else:
            return False
        if not choice.boundary.at_begin:
            choice.note(label, detail)
        if is_part and choice.ends_step:
            if not choice.rests:
                choice.label = label
            self._end_step(choice, results, since)
        else:
            choice.watching += perf_counter() - since
        if choice.boundary.at_begin:
            choice.note(label, detail)
        return True

    def _prefer(self, rank: int) -> None:
        """Give up a choice further down than this boundary, if nothing was measured of it."""
        self._ranks.add(rank)
        if self.choice is not None and rank < self.choice.rank and not self.measurement.settled:
            self._begin_anew()

    def _give_up_what_ceased(self, rank: int, before: Sequence[int]) -> None:
        """Give up boundaries that have not been seen for more of the program's updates than there were before."""
        if self._boundaries[rank].mode != "train" or self._ends[rank].total() <= 2 * before[rank]:
            return
        self._before = None
        ceased = {rank for rank in self._ranks if self._boundaries[rank].may_cease}
        self._ranks -= ceased
        if self.choice is not None and self.choice.rank in ceased and not self.measurement.settled:
            self._begin_anew()

    def _begin_anew(self) -> None:
        self.choice = None
        self._reports, self._last_reports = [], []
        self.measurement.discard()

    def _choose(self, period: Period | None, rank: int, label: str, detail: Hashable) -> None:
        """Choose this boundary if its calls repeat and none in front of it is to be waited for."""
        if period is None or rank > min(self._ranks):
            return
        self.choice = Choice(rank, self._boundaries[rank], period, label)
        self.choice.seen = self._seen(self.choice)
        if self.choice.boundary.at_begin:
            self.choice.note(label, detail)
        if self.choice.ends_step:
            self.choice.begin_step()

    def _seen(self, choice: Choice) -> int:
        """Count the steps, from the ends of all that is in one."""
        keys = choice.period.keys
        return sum(number for (source, _), number in self._ends[choice.rank].items() if source in keys) // len(keys)

    def _end_step(self, choice: Choice, results: tuple[object, ...], now: float) -> None:
        """Count a step that ends now [s], and let the measurement see it."""
        choice.end_step(now)
        if choice.began is not None:
            if choice.is_regular and self.following is not None:
                self._go_on(self.following)
            choice.is_disturbed = self.following is not None and self.following.measures
            if not choice.rests or self.measurement.running is not None:
                self.measurement.step_ended(choice.seen, results, self._begin)
            before, self._last_reports, self._reports = self._last_reports, self._reports, []
            if self._last_reports == before and self._may_repeat(choice):
                self._repeats = follow(choice, before, self.measurement.due)
        self._models.clear()
        choice.begin_step()

    def _further(self) -> Steps | None:
        """Return the loop that runs while this one rests; None if no further one is to be measured."""
        if self.following is None and self._first._left:
            self.following = Steps(self._boundaries, self.measurement, self.imports, (*self._resting, self))
        return self.following

    def _go_on(self, following: Steps) -> None:
        """Let the following loop rest, as this one goes on; forget it if nothing was measured of it."""
        following.measurement.close()
        if following.choice is None or not following.measurement.settled:
            self.following = None
            return
        following._look_again()
        following._reports = []
        following.choice.began, following.choice.calls = None, []
        if following.following is not None:
            following._go_on(following.following)

    def _may_begin(self) -> bool:
        """Tell whether to measure this loop, which is unlike the steps of those that rest, and ends what they began."""
        if self._resting and not self.measurement.settled:
            if not self._first._left:
                return False
            self._first._left -= 1
        for loop in self._resting:
            loop.measurement.close()
            if loop.choice is not None:
                loop.choice.is_disturbed = True
        return True

    def _say(self, text: str) -> None:
        """Say something of this loop, which is a further one."""
        phrase = "" if self.choice is None else f", {self.choice.phrase}"
        self._first.measurement.say(f"loop {len(self._resting) + 1}{phrase}: {text}")

    def _begin(self) -> None:
        """Let the measurement begin, with what is known of the steps."""
        choice = self.choice
        if choice is None or not self._may_begin():
            return
        models = [(self._boundaries[rank], reference()) for rank, reference in self._models.values()]
        sizes = [
            (boundary.parameters(model), number) for number, (boundary, model) in enumerate(models) if model is not None
        ]
        model = models[max(sizes)[1]][1] if sizes else None
        trains = any(self._boundaries[rank].mode == "train" for rank in self._ranks)
        mode: Mode = choice.boundary.mode or ("train" if trains else "infer")
        step = Step(
            run=_unbound,
            mode=mode,
            model=model,
            irregular=lambda: not choice.is_regular,
            seconds=lambda: choice.seconds,
            **self._sizes.get(choice.rank, EMPTY),  # type: ignore[arg-type]
        )
        backends = (self._boundaries[rank].backend for rank in (choice.rank, *sorted(self._ranks)))
        self.measurement.begin(step, next(filter(None, backends), None), choice.seen)

    def blocked(self, by: str | None) -> None:
        """Note that the program's own profiler runs, or None: no longer."""
        if self.closed or (self._is_here and not self.listens):
            return
        for loop in self.loops:
            if self._is_here:
                loop._look_again()
            loop.measurement.block(by, here=self._is_here)


def _unbound() -> None:
    """Stand for the run of a step until the recorder gives it one."""


class StepWatcher:
    """See `boundary.Watcher`."""

    def __init__(self, steps: Steps, rank: int) -> None:
        self._steps, self._rank, self.source = steps, rank, Identities().of
        self.ended = functools.partial(steps.ended, rank)

    @property
    def wanted(self) -> bool:
        """See `boundary.Watcher`."""
        return self._steps.listens

    def met(self, label: str) -> None:
        """See `boundary.Watcher`."""
        try:
            self._steps.met(label)
        except Exception as error:
            self._steps.fail(error)

    def expect(self) -> None:
        """See `boundary.Watcher`."""
        try:
            self._steps.expect(self._rank)
        except Exception as error:
            self._steps.fail(error)

    def blocked(self, by: str | None) -> None:
        """See `boundary.Watcher`."""
        try:
            self._steps.blocked(by)
        except Exception as error:
            self._steps.fail(error)

    def when_imported(self, module: str, function: Callable[[], None]) -> None:
        """See `boundary.Watcher`."""
        self._steps.imports.call(module, function)

    def wrap(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """See `boundary.Watcher`."""
        original, own = getattr(owner, name), vars(owner).get(name)
        wrapper = functools.wraps(original)(make(original))
        placed = staticmethod(wrapper) if isinstance(own, staticmethod) else wrapper
        setattr(owner, name, placed)

        def remove() -> None:
            if vars(owner).get(name) is not placed:
                return  # the program has put another one there
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)

        self.remove_by(remove)

    def remove_by(self, remove: Callable[[], None]) -> None:
        """See `boundary.Watcher`."""
        self._steps.removers.append(remove)
