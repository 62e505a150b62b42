"""The arithmetic of measuring: rates, spreads, what is left out, and where a cache ends."""

from __future__ import annotations

import pytest

from roofline.core.device import Cache, Ceiling
from roofline.devices import contention, measure
from roofline.devices.contention import Load, Moment
from roofline.devices.measure import _run, ranges
from roofline.devices.sampling import Best, Candidate, Finding, Probe, best_of, ceiling, fastest_first, usable_size


class Clock:
    """A Timer on which calls take the time that they say; it counts them."""

    def __init__(self):
        self.calls: dict[float, int] = {}

    def __call__(self, run, seconds):
        taken = run()
        count = max(1, int(seconds / taken))
        self.calls[taken] = self.calls.get(taken, 0) + count
        return [taken] * count


def test_the_fastest_candidate_wins():
    slow = Candidate("slow", 100.0, lambda: 0.02)  # 100 / 0.02 = 5,000 per second
    fast = Candidate("fast", 100.0, lambda: 0.01)  # 100 / 0.01 = 10,000 per second
    best = fastest_first([slow, fast], 1.0, Clock())
    assert [result.label for result in best] == ["fast", "slow"]
    assert best[0].rate == pytest.approx(10_000)
    assert best[0].spread == 0


def test_spread_is_best_less_median_over_best():
    times = iter([[0.0], [1.0, 2.0], [4.0, 2.0]])
    best = fastest_first([Candidate("a", 8.0, lambda: 0)], 100.0, lambda run, seconds: next(times), rounds=1)[0]
    # samples 1, 2, 4, 2 s: rates 8, 4, 2, 4 per second; best 8, median 4, spread (8 - 4) / 8
    assert best == Best("a", 8.0, 0.5, 4)


def test_a_large_candidate_is_not_run_where_the_small_one_is_slow():
    def refuse():
        raise AssertionError("a call of 1000 s was made")

    small = Candidate("small", 1.0, lambda: 0.1, "product")  # 10 per second, so large would take 1000 s
    large = Candidate("large", 10_000.0, refuse, "product")
    assert [result.label for result in fastest_first([large, small], 1.0, Clock())] == ["small"]


def test_each_series_is_judged_by_its_own_small_one():
    quick = Candidate("quick", 1e6, lambda: 0.001, "one")  # a fast series must not admit a slow one's giants
    small = Candidate("small", 1.0, lambda: 0.1, "two")
    large = Candidate("large", 1e5, lambda: pytest.fail("10,000 s"), "two")
    assert fastest_first([quick, small, large], 1.0, Clock())[0].label == "quick"


def test_what_raises_is_left_out():
    def missing():
        raise RuntimeError("not implemented for 'Half'")

    good = Candidate("good", 1.0, lambda: 0.01)
    assert [result.label for result in fastest_first([Candidate("bad", 0.5, missing, "x"), good], 0.1, Clock())] == [
        "good"
    ]
    with pytest.raises(RuntimeError, match="not implemented"):
        fastest_first([Candidate("bad", 1.0, missing)], 0.1, Clock())


def test_a_ceiling_tells_how_it_was_measured():
    made = ceiling(Best("torch.mm fp32 8x8x8", 2.5e9, 0.123456, 7), "2 threads", "2026-01-02")
    assert made.value == 2.5e9
    assert made.spread == 0.1235
    assert made.source == "measured: torch.mm fp32 8x8x8, best of 7, 2 threads"
    assert made.date == "2026-01-02"


CURVE = [(1.0, 50.0), (2.0, 100.0), (4.0, 98.0), (8.0, 80.0), (16.0, 74.0), (32.0, 90.0), (64.0, 20.0)]


def test_usable_size_is_the_largest_that_reaches_three_quarters():
    # plateau within (0, 16]: 100, seen at 2; the largest with at least 75 is 32; the dip to 74 at 16 is noise
    assert usable_size(CURVE, 0.0, 16.0) == (2.0, 32.0)
    # the level reported to have 16 cannot be larger
    assert usable_size(CURVE, 0.0, 16.0, cap=16.0) == (2.0, 16.0)
    # (4, 16]: plateau 80 at 8; 90 at 32 reaches 60, 20 at 64 does not
    assert usable_size(CURVE, 4.0, 16.0) == (8.0, 32.0)
    assert usable_size(CURVE, 64.0, 128.0) is None


def test_usable_size_is_midway_where_the_next_level_is_known():
    # (100 + 50) / 2 = 75: 16 with 74 is below, 32 with 90 above; (100 + 90) / 2 = 95: 4 with 98 is the last
    assert usable_size(CURVE, 0.0, 16.0, next_level=50.0) == (2.0, 32.0)
    assert usable_size(CURVE, 0.0, 16.0, next_level=90.0) == (2.0, 4.0)
    # a next level that is faster says nothing: 75 % again, and no more than what is reported
    assert usable_size(CURVE, 0.0, 16.0, cap=16.0, next_level=120.0) == (2.0, 16.0)


def test_the_better_of_two_turns():
    slow, fast = Ceiling(value=1.0, source="a"), Ceiling(value=2.0, source="b")
    assert best_of("dram.copy", slow, fast) is fast
    assert best_of("dram.copy", fast, slow) is fast
    assert best_of("launch.torch-eager", fast, slow) is slow  # a time: the shorter
    assert best_of("dram.copy", None, slow) is slow


def test_findings_join_by_ceiling_and_keep_the_later_caches():
    def finding(rate, size):
        return Finding({"cache.llc": Ceiling(value=rate, source="s")}, (Cache(level="llc", size=size, source="s"),))

    joined = finding(400.0, 8e6).joined(finding(100.0, 9e6)).joined(Finding(notes={"matrix.fp8": "no unit"}))
    assert joined.ceilings["cache.llc"].value == 400.0
    assert joined.caches[0].size == 9e6
    assert joined.notes == {"matrix.fp8": "no unit"}


def test_a_probe_that_fails_is_a_note_and_the_others_go_on():
    class OfACompiler(Exception):
        """Triton's and others' errors are no RuntimeErrors."""

    def fail(names):
        raise OfACompiler("no compiler\nand a long log")

    def silent(names):
        raise AttributeError

    def work(names):
        return Finding({"dram.copy": Ceiling(value=1.0, source="s")})

    probes = [Probe(("matrix.fp32",), fail), Probe(("vector.fp32",), silent), Probe(("dram.copy",), work)]
    found, _ = _run([(probe, probe.names) for probe in probes], 1, None)
    assert set(found.ceilings) == {"dram.copy"}
    assert found.notes == {"matrix.fp32": "no compiler", "vector.fp32": "AttributeError"}


def test_only_what_was_disturbed_each_time_is_measured_a_third_time(monkeypatch):
    """One second of two threads a turn: they wait 0.4 s of the 2 s for A in its first two turns, for B in the second.

    So A has 20, 20 and 0 %, and its third turn ends it; B has 0 and 20 %, of which the least counts. C is one thread's.
    """
    times = iter([0.4, 0.0, 0.4, 0.4, 0.0])
    clock = {"wall": 0.0, "waited": 0.0}
    ran = []

    def probe(name, busy=True):
        def run(names):
            ran.append(name)
            if busy:
                clock["wall"] += 1.0
                clock["waited"] += next(times)
            return Finding({name: Ceiling(value=float(len(ran)), source="s")})

        return Probe((name,), run, busy=busy)

    now = classmethod(lambda cls: Moment(clock["wall"], 0.0, 0, {"1": clock["waited"]}))
    monkeypatch.setattr(measure.Moment, "now", now)
    probes = [probe("dram.copy"), probe("dram.read"), probe("function.random", busy=False)]
    reports = []
    found, _ = _run([(p, p.names) for p in probes], 2, lambda *report: reports.append(report[1:]))
    assert ran == ["dram.copy", "dram.read", "function.random"] * 2 + ["dram.copy"]
    assert {name: c.waited for name, c in found.ceilings.items()} == {
        "dram.copy": 0.0,
        "dram.read": 0.0,
        "function.random": None,
    }
    assert reports == [(0, 6), (1, 6), (2, 6), (3, 6), (4, 6), (5, 6), (6, 7), (7, 7)]


def test_a_probe_beside_another_process_on_the_gpu_is_marked_and_repeated():
    """Looks before and after: A sees another process in each turn, B in its first alone, and of C nobody tells."""
    first, second = [True, True, False, True, None, None], [True, False, False, False, None, None]
    looks = iter([*first, *second, *[True] * 4])
    ran = []

    def probe(name):
        def run(names):
            ran.append(name)
            return Finding({name: Ceiling(value=1.0, source="s")})

        return Probe((name,), run)

    probes = [probe("dram.copy"), probe("dram.read"), probe("link.h2d")]
    found, _ = _run([(p, p.names) for p in probes], 1, None, lambda: next(looks))
    assert ran == ["dram.copy", "dram.read", "link.h2d"] * 2 + ["dram.copy"] * 2
    assert {name: c.waited for name, c in found.ceilings.items()} == {
        "dram.copy": 0.5,  # the least of 1, 0.5, 1 and 1
        "dram.read": 0.0,
        "link.h2d": None,
    }
    assert found.ceilings["dram.copy"].contended


def test_the_best_rate_has_the_least_waiting_of_all():
    # A rate that others' load let pass is at least what an idle machine reaches: 3 while waiting 40 % of the time, 2 of
    # 1 %, is a ceiling of 3 that needs no second look.
    busy, idle = Ceiling(value=3.0, source="a", waited=0.4), Ceiling(value=2.0, source="b", waited=0.01)
    assert best_of("dram.copy", busy, idle) == Ceiling(value=3.0, source="a", waited=0.01)
    assert not best_of("dram.copy", busy, idle).contended
    assert best_of("dram.copy", busy, Ceiling(value=1.0, source="c")).contended


def test_contention_is_waiting_over_the_threads_time():
    # 2 threads for 10 s have 20 s; they waited for 1 s of it: 5 %
    assert Load(wall=10.0, processor=19.0, waited=1.0).contention(2) == pytest.approx(0.05)
    assert Load().contention(2) == 0.0
    # a pool of 8 threads on 2 processors waits longer than 2 threads have time
    assert Load(wall=1.0, waited=6.0).contention(2) == 1.0
    assert Load(wall=1.0, waited=-2.6).contention(2) == 0.0
    assert Load(4.0, 3.0, 1.0, 4) + Load(6.0, 5.0, 1.0, 5) == Load(10.0, 8.0, 2.0, 9)


def test_a_thread_that_ended_takes_nothing_off_the_waiting_of_others():
    """Thread 1 waits for 1 s more; 2 ended after 5 s of waiting; 3 began and waited for 0.5 s; 4 is another one now."""
    earlier = Moment(4.0, 3.0, 4, {"1": 2.0, "2": 5.0, "4": 9.0})
    later = Moment(10.0, 8.0, 9, {"1": 3.0, "3": 0.5, "4": 1.0})
    assert later.since(earlier) == Load(6.0, 5.0, 1.5, 5)


def test_what_living_threads_waited_is_read_thread_by_thread(tmp_path, monkeypatch):
    # Linux: time on a processor [ns], time in the queue [ns], and how often it was given one.
    for thread, text in (("7", "5 250000000 3\n"), ("8", "not told"), ("9", "0")):
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "schedstat").write_text(text)
    monkeypatch.setattr(contention, "_THREADS", tmp_path)
    assert Moment.now().waits == {"7": 0.25}


def test_ranges_of_cpus():
    assert ranges((0, 1, 2, 5)) == "0-2,5"
    assert ranges((3,)) == "3"
    assert ranges(()) == ""
