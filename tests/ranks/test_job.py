"""Who is waited for, by how much and why: jobs that are simulated (tests/data/make_ranks.py), and a recorded one."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import handmade
import msgspec
import pytest

from roofline import importing
from roofline.core.schema import Profile, load
from roofline.errors import InputError
from roofline.ranks import Job, describe, folder
from roofline.ranks.chance import is_late, is_lowest
from roofline.ranks.work import Work, compare_work, find_outliers
from roofline.renderers.ranks import _sentences, text
from roofline.renderers.ranks import json as as_json

sys.path.append(str(Path(__file__).parents[1] / "data"))

import make_ranks
from make_ranks import Slow
from slow_rank import Slowed, slow


def simulated(slow: Slow | None = None, **options: int) -> list[Profile]:
    with TemporaryDirectory() as folder:
        files = []
        for rank, trace in enumerate(make_ranks.ranks(slow=slow, **options)):
            files.append(Path(folder) / f"net_rank{rank}.json")
            files[-1].write_bytes(trace)
        return importing.read(files, device="h100-sxm", workers=1)


#: Each job is simulated once.
profiles = cache(simulated)


@cache
def job(slow: Slow | None = None, **options: int) -> Job:
    return describe(profiles(slow, **options))


@pytest.mark.parametrize(
    ("slow", "kind", "later"),
    [
        (Slow(rank=2, more=2), "other work", 3 * 200e-6),  # two kernels of 100 us before each of three collectives
        (Slow(rank=2, pace=1.25), "slower ops", 0.25 * 1200e-6),  # kernels of 1200 us a step
        (Slow(rank=2, idle=300), "idle device", 3 * 300e-6),
        (Slow(rank=2, late=5000), "later start", 5000e-6 / 3),  # once in three steps
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_slow_rank_is_named_with_what_it_does_differently(slow: Slow, kind: str, later: float) -> None:
    slowed = job(slow)
    found = slowed.straggler
    assert found is not None
    assert [(outlier.rank, outlier.is_alike) for outlier in slowed.outliers] == {
        "other work": [(2, False)],
        "slower ops": [(2, True)],
    }.get(kind, [])
    assert (found.rank, found.kind, found.stands_out) == (2, kind, True)
    assert found.later == pytest.approx(later, rel=0.1)
    assert found.start + found.computing + found.idle == pytest.approx(found.later)


def test_ranks_that_are_alike_are_not_told_apart() -> None:
    alike = job(steps=6)
    assert alike.straggler is not None
    assert not alike.straggler.stands_out
    assert [key for key, _ in _sentences.sentences(alike)] == ["nobody-stands-out", "clocks"]


def test_ops_that_all_ranks_run_leave_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred ops, whose thirds of nanoseconds are rounded as they are summed up, in any order."""
    kernels = tuple(range(101, 801, 7))
    monkeypatch.setattr(make_ranks, "KERNELS", (kernels, kernels[:1]))
    work = compare_work(simulated(Slow(rank=2, pace=1.1)))
    assert work.alike.shape == (4, 100)
    assert work.different.tolist() == [0, 0, 0, 0]


def test_ops_that_take_no_time_on_the_others_have_no_ratio() -> None:
    import numpy as np

    (outlier,) = find_outliers([4, 5, 6], Work(np.asarray([[0.0], [1e-3], [0.0]]), np.zeros(3)))
    assert (outlier.rank, outlier.is_alike, outlier.mean, outlier.ratios) == (5, True, 0.0, None)


def test_a_signature_that_no_op_runs_is_no_op() -> None:
    # The last of eight ops alone is adamw, so that its signature is of none without it: 3000 us that one rank lacks.
    whole = handmade.profile()
    assert compare_work([handmade.profile(ops=whole.ops[:-1]), whole]).different.tolist() == pytest.approx([0, 3e-3])
    fewer = handmade.profile(ops=whole.ops[:1], signatures=whole.signatures[:1])
    assert compare_work([handmade.profile(ops=whole.ops[:1]), fewer]).different.tolist() == [0, 0]


@pytest.mark.parametrize("counted", [handmade.profile(profiled=None), handmade.without_steps()])
def test_a_rank_without_times_is_refused(counted: Profile) -> None:
    with pytest.raises(InputError, match="The ops of rank 0 have no times"):
        describe([handmade.profile(), counted])


def test_waiting_is_what_a_collective_lasts_longer_than_on_the_last_rank() -> None:
    """Rank 2 comes 200 us later, up to a jitter of 6 us, to each of three collectives a step. A transfer: 60 us."""
    slow = job(Slow(rank=2, idle=200), steps=4)
    assert [row.waiting for row in slow.ranks] == pytest.approx([600e-6, 600e-6, 0, 600e-6], abs=3 * 6e-6)
    assert [row.last for row in slow.ranks] == [0, 0, slow.matched, 0]
    assert slow.matched == 4 * 3
    (row,) = slow.collectives
    assert (row.runs, row.shortest, row.last, row.times_last) == (12, pytest.approx(60e-6), 2, 12)
    # Of 1 MB, 2 * 3/4 of it go over the link of each of four ranks; the links of a device carry 450 GB/s.
    assert (row.algorithm_bandwidth, row.bandwidth) == pytest.approx((1e6 / 60e-6, 1.5 * 1e6 / 60e-6))
    assert row.of_link == pytest.approx(1.5 * 1e6 / 60e-6 / 450e9)
    # The last of the ranks comes 200 us after the others; to the second collective of three 60 us of transfer, 40 us
    # of idle time, a kernel of 400 us and again 200 us after it came to the first.
    assert (row.apart, row.arrives) == pytest.approx((200e-6, 900e-6), abs=2 * 6e-6)
    assert slow.mean.waiting == pytest.approx(450e-6, abs=3 * 6e-6)
    # Of three ranks it would be the mean of others than a sum over all ranks tells.
    first, *others = slow.profiles
    unknown = msgspec.structs.replace(first.profiled, idle=())
    partly = describe([msgspec.structs.replace(first, profiled=unknown), *others])
    assert [row.idle is None for row in partly.ranks] == [True, False, False, False]
    assert (partly.mean.idle, partly.mean.computing) == (None, None)
    assert partly.mean.waiting is not None
    assert [profile.imported and profile.imported.waiting for profile in slow.profiles] == pytest.approx(
        [row.waiting for row in slow.ranks]
    )


def test_clocks_need_not_agree() -> None:
    """All ranks end a collective at once, by clocks that are apart by 0 and by 7 s."""
    found = [job(Slow(rank=1, late=900), clock=clock) for clock in (0, 7_000_000)]
    assert [one.ends_apart for one in found] == pytest.approx([0, 0], abs=1e-9)
    assert found[0].straggler == found[1].straggler


def test_a_rank_with_one_collective_less_is_matched_as_far_as_all_have_them() -> None:
    """Of step 8 one rank lacks a collective: what is left of that step may be any of them."""
    one, *others = profiles()
    table = one.collectives
    assert table is not None
    step = table.step[0]
    columns = {name: column[1:] for name, column in msgspec.structs.asdict(table).items() if name != "messages"}
    less = msgspec.structs.replace(one, collectives=msgspec.structs.replace(table, **columns))
    found = describe([less, *others])
    assert (found.matched, found.unmatched) == (len(table.step) - 3, 3)
    assert step not in {table.step[row] for row in range(3, len(table.step))}
    assert "unmatched" in [key for key, _ in _sentences.sentences(found)]


def test_groups_are_matched_by_themselves() -> None:
    """Ranks 0 and 1 are one group, 2 and 3 another one: each waits for its own."""
    ranks = profiles(Slow(rank=1, idle=200))
    split = []
    for rank, profile in enumerate(ranks):
        table = profile.collectives
        assert table is not None
        members = (0, 1) if rank < 2 else (2, 3)
        messages = tuple(msgspec.structs.replace(message, members=members, ranks=2) for message in table.messages)
        split.append(msgspec.structs.replace(profile, collectives=msgspec.structs.replace(table, messages=messages)))
    found = describe(split)
    assert found.ranks[0].waiting == pytest.approx(600e-6, abs=3 * 6e-6)
    assert found.ranks[2].waiting == pytest.approx(found.ranks[3].waiting, abs=3 * 12e-6)
    assert [row.runs for row in found.collectives] == [len(split[0].collectives.step)] * 2  # type: ignore[union-attr]


def test_chance_alone_makes_no_straggler() -> None:
    """One collective has a last rank, whoever it is: that tells nothing. Eight of which it is always the same do."""
    import numpy as np

    took_part = np.ones((4, 8), bool)
    duration = np.full((4, 8), 2.0)
    duration[3] = 1.0
    assert is_late(duration, took_part, 3)
    # One of four is always the last of so many by chance: 4 / 4**4 is below 2.5 %, 4 / 4**3 is not.
    assert is_late(duration[:, :4], took_part[:, :4], 3)
    assert not is_late(duration[:, :3], took_part[:, :3], 3)
    assert not is_late(duration[:, :1], took_part[:, :1], 3)
    # Five or more of eight: 4 * (56 * 27 + 28 * 9 + 8 * 3 + 1) / 4**8 is 10.9 %, and six or more 1.7 %.
    for times, late in ((5, False), (6, True)):
        some = np.where(np.arange(8) < times, duration, duration[::-1])
        assert is_late(some, took_part, 3) is late
    # In half of the collectives one of two ranks is the last anyhow: 4 * (4 / 4**4 of four) * (1 / 2**4 of the others).
    pairs = took_part & ((np.arange(8) < 4) | (np.arange(4) > 1)[:, np.newaxis])
    assert is_late(duration, pairs, 3)
    assert not is_late(np.asarray([[1.0, 1.0], [2.0, 3.0], [3.0, 2.0]]), np.ones((3, 2), bool), 0)
    assert not is_late(np.full((4, 8), 2.0), took_part, 3)


def test_a_rank_that_waits_far_less_than_the_others_stands_out() -> None:
    """Where it began late once, no order shows it: 3 of 28 ms. Of even numbers one is the lowest by chance."""
    import numpy as np

    assert is_lowest(3.0, np.asarray([21.0, 22, 24, 25, 26, 28, 31]))
    assert not is_lowest(3.0, np.asarray([4.0, 5, 6, 7, 8, 9, 10]))
    assert not is_lowest(3.0, np.asarray([30.0]))


def test_the_slow_rank_of_a_recorded_job(recorded_job: Job) -> None:
    """Its first all-to-all takes 10 us where those of the others take 514 to 7,635: it is the last to arrive."""
    found = recorded_job
    assert found.straggler is not None
    assert (found.straggler.rank, found.straggler.stands_out) == (7, True)
    assert (found.straggler.last, found.straggler.collectives) == (5, 8)
    assert found.straggler.kind == "later start"
    assert found.ranks[1].waiting == pytest.approx(11.119e-3)
    # Buckets of gradients, as NCCL was given them: 394,241, 112 and 226,960 floats.
    sent = {row.message.sent for row in found.collectives if row.message.name == "allreduce"}
    assert sent == {4.0 * 394_241, 4.0 * 112, 4.0 * 226_960}
    assert all(row.of_link is not None and row.of_link < 1 for row in found.collectives)
    assert (found.matched, found.unmatched) == (8, 0)
    assert found.ends_apart == pytest.approx(3e-6, abs=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("slowed", "kind"),
    [
        (Slowed(rank=3, by="start", time=20_000), "later start"),
        (Slowed(rank=3, by="work", time=3_000), "other work"),
        (Slowed(rank=3, by="idle", time=3_000), "idle device"),
        (Slowed(rank=3, by="clock", pace=30), "slower ops"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_rank_of_a_recorded_job_that_is_slowed_is_named(
    recorded: Callable[[str], Path], tmp_path: Path, slowed: Slowed, kind: str
) -> None:
    """Rank 7, which the others waited for, is 4.9 ms late; kernels of a rank take 1 ms, and 30 ms at such a clock."""
    traces = [json.loads(gzip.decompress(recorded(f"ranks/dlrm_rank{rank}.json.gz").read_bytes())) for rank in range(8)]
    files = [tmp_path / f"dlrm_rank{rank}.json" for rank in range(8)]
    for file, trace in zip(files, slow(traces, slowed), strict=True):
        file.write_text(json.dumps(trace))
    found = describe(importing.read(files))
    assert found.straggler is not None
    assert (found.straggler.rank, found.straggler.kind, found.straggler.stands_out) == (3, kind, True)
    assert (found.matched, found.unmatched) == (8, 0)
    assert found.ends_apart == pytest.approx(3e-6, abs=1e-6)  # one clock still


def test_a_kernel_that_a_collective_launches_besides_is_no_collective(
    recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    trace = json.loads(gzip.decompress(recorded("ranks/dlrm_rank0.json.gz").read_bytes()))
    kernel = next(event for event in trace["traceEvents"] if event.get("cat") == "kernel" and "nccl" in event["name"])
    launch = next(
        event
        for event in trace["traceEvents"]
        if event.get("cat") == "cuda_runtime" and event["args"]["correlation"] == kernel["args"]["correlation"]
    )
    ids = {"correlation": 99_999_999, "External id": 99_999_999}
    trace["traceEvents"] += [
        {**launch, "args": {**launch["args"], **ids}},
        {**kernel, "name": "pack", "ts": kernel["ts"] - 3, "dur": 2, "args": {**kernel["args"], **ids}},
    ]
    file = tmp_path / "dlrm_rank0.json"
    file.write_text(json.dumps(trace))
    collectives = importing.read([file], workers=1)[0].collectives
    assert collectives is not None
    assert len(collectives.step) == 8


# ------------------------------------------------------------------------------------------------ folders, formats


def test_a_folder_holds_a_profile_per_rank_and_their_list(tmp_path: Path) -> None:
    ranks = profiles()
    folder.write(tmp_path, ranks)
    assert json.loads((tmp_path / folder.MANIFEST).read_bytes()) == {
        "schema": 1,
        "of": 4,
        "ranks": [{"rank": rank, "file": f"rank-{rank}.json"} for rank in range(4)],
    }
    assert describe(folder.read(tmp_path)) == describe(ranks)
    assert load(tmp_path / "rank-2.json") == ranks[2]


@pytest.mark.parametrize(
    "manifest",
    [
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"schema": 2, "of": 1, "ranks": [{"rank": 0, "file": "rank-0.json"}]}',
        b'{"schema": 1, "of": 1, "ranks": []}',
        b'{"schema": 1, "of": 1, "ranks": [{"rank": 0, "file": "../rank-0.json"}]}',
    ],
)
def test_a_damaged_list_is_refused(tmp_path: Path, manifest: bytes) -> None:
    (tmp_path / folder.MANIFEST).write_bytes(manifest)
    with pytest.raises(InputError, match="import the traces again"):
        folder.read(tmp_path)


def test_the_screen_of_a_job(golden: Callable[[str, str], None]) -> None:
    golden("ranks.txt", text.render(job(Slow(rank=2, pace=1.25))))


def test_of_many_ranks_those_that_wait_least_and_most_are_shown() -> None:
    many = job(Slow(rank=2, more=1), number=20)
    shown = text.render(many)
    assert "8 more ranks" in shown
    assert "8 more ranks" not in text.render(many, every=True)
    assert sum(line.lstrip().startswith("2 ") for line in shown.splitlines()) == 1


def test_numbers_of_all_formats_are_equal() -> None:
    slow = job(Slow(rank=2, pace=1.25))
    document = json.loads(as_json.render(slow))
    assert document["straggler"]["kind"] == "slower ops"
    assert [row["waiting"] for row in document["ranks"]] == [row.waiting for row in slow.ranks]
    assert [row["id"] for row in document["sentences"]] == [key for key, _ in _sentences.sentences(slow)]
    assert document["collectives"][0]["bandwidth"] == slow.collectives[0].bandwidth


def test_what_is_not_known_of_a_rank_is_no_zero() -> None:
    """A rank without collectives waits for nobody knows how long, and one without idle time computes for as long."""
    one, *others = profiles()
    assert one.profiled is not None
    bare = msgspec.structs.replace(one, collectives=None, profiled=msgspec.structs.replace(one.profiled, idle=()))
    row = describe([bare, *others]).ranks[0]
    assert row.hidden == pytest.approx(0, abs=1e-3)
    assert (row.waiting, row.last, row.idle, row.computing) == (None, None, None, None)
    assert "\u2013" in text.render(describe([bare, *others]))


def test_names_in_traces_are_only_names() -> None:
    one, *others = profiles()
    evil = "\x1b[31mred\n<script>"
    table = one.collectives
    assert table is not None
    messages = tuple(msgspec.structs.replace(message, name=evil, group=evil) for message in table.messages)
    hostile = msgspec.structs.replace(one, model=evil, collectives=msgspec.structs.replace(table, messages=messages))
    for rendered in (text.render(describe([hostile, *others])), as_json.render(describe([hostile, *others]))):
        assert "\x1b" not in rendered
    assert replace(describe([hostile]), of=3).of == 3
