"""The cache of costs: what goes in comes out, and nothing else can come out of a file."""

from __future__ import annotations

import os

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.core.cost import Cost, unknown
from roofline.costs.calls import Call, Tensor
from roofline.costs.counted import Costed
from roofline.importing.work import cache as cost_cache

X = Tensor((2, 3), (3, 1), "float", device="")
CALL = Call("aten::add", None, (X, X, 1))
COSTED = Costed(
    cost=Cost(vector_flops=6.0, functions={"erf": 2.0}, bytes_read=48.0, quality="assumed", note="why"),
    kind="add",
    op_class="pointwise",
    shapes="[2,3] x [2,3]",
    dtype="fp32",
    output="fp32",
    reads=((True, 0, 24.0), (True, 1, 24.0)),
    writes=((False, 0, 24.0),),
    inplace=True,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "costs.msgpack"


@pytest.fixture
def saved(path):
    cache = cost_cache.Cache(path)
    cache.put(cost_cache.key(CALL), COSTED, by_torch=False)
    cache.names["aten::add"] = "op"
    cache.wrappers["k"] = True
    assert cache.save()
    return path


def test_what_goes_in_comes_out(saved):
    again = cost_cache.Cache(saved)
    assert again.get(cost_cache.key(CALL)) == COSTED
    assert (again.names, again.wrappers) == ({"aten::add": "op"}, {"k": True})
    assert again.get(cost_cache.key(Call("aten::sub", None, (X, X, 1)))) is None
    assert [file.name for file in saved.parent.iterdir()] == ["costs.msgpack"]  # nothing is left beside it


def test_unknown_stays_unknown(path):
    cache = cost_cache.Cache(path)
    lost = msgspec.structs.replace(unknown("no rule"))
    cache.put("k", Costed(lost, "x", "other", "", None, None), by_torch=True)
    cache.save()
    assert cost_cache.Cache(path).get("k").cost == unknown("no rule")


def test_a_view_of_nothing_new_is_not_written(saved):
    before = saved.stat().st_mtime_ns
    assert not cost_cache.Cache(saved).save()
    assert saved.stat().st_mtime_ns == before


def test_without_a_path_nothing_is_kept():
    cache = cost_cache.Cache(None)
    cache.put("k", COSTED, by_torch=False)
    assert cache.get("k") == COSTED
    assert not cache.save()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    cache = cost_cache.Cache(tmp_path / "file" / "costs.msgpack")
    cache.put("k", COSTED, by_torch=False)
    assert not cache.save()


def test_two_imports_at_a_time_keep_what_both_learned(saved):
    one, two = cost_cache.Cache(saved), cost_cache.Cache(saved)
    one.put("one", COSTED, by_torch=False)
    two.put("two", COSTED, by_torch=False)
    assert [one.save(), two.save()] == [True, True]
    found = cost_cache.Cache(saved)
    assert all(found.get(key) == COSTED for key in ("one", "two", cost_cache.key(CALL)))


def test_the_oldest_go_where_there_are_too_many(path, monkeypatch):
    monkeypatch.setattr(cost_cache, "MOST", 3)
    cache = cost_cache.Cache(path)
    for number in range(5):
        cache.put(str(number), COSTED, by_torch=False)
    cache.save()
    found = cost_cache.Cache(path)
    assert [number for number in range(5) if found.get(str(number))] == [2, 3, 4]


def test_other_rules_start_anew(saved, monkeypatch):
    monkeypatch.setattr(cost_cache, "rules", lambda: "other")
    assert cost_cache.Cache(saved).get(cost_cache.key(CALL)) is None


def test_another_torch_takes_what_does_not_hang_on_it(path, monkeypatch):
    monkeypatch.setattr(cost_cache, "torch_version", lambda: "2.13")
    cache = cost_cache.Cache(path)
    cache.put("ours", COSTED, by_torch=False)
    cache.put("torch's", COSTED, by_torch=True)
    cache.names["aten::add"] = "op"
    cache.save()
    monkeypatch.setattr(cost_cache, "torch_version", lambda: "2.14")
    newer = cost_cache.Cache(path)
    assert (newer.get("ours"), newer.get("torch's"), newer.names) == (COSTED, None, {})
    # Without torch there is nobody else to ask.
    monkeypatch.setattr(cost_cache, "torch_version", lambda: "")
    without = cost_cache.Cache(path)
    assert (without.get("torch's"), without.names) == (COSTED, {"aten::add": "op"})


def test_rules_are_read_from_the_files_that_hold_them(monkeypatch):
    monkeypatch.setattr(cost_cache, "_RULES", ("pytorch/aten/bytes.py",))
    one = cost_cache.rules()
    monkeypatch.setattr(cost_cache, "_RULES", ("pytorch/aten/flops.py",))
    assert cost_cache.rules() != one
    monkeypatch.setattr(cost_cache, "_RULES", ("not there.py",))
    assert len(cost_cache.rules()) == 24


def test_calls_that_python_takes_for_equal_have_keys_of_their_own():
    keys = [cost_cache.key(Call("aten::add", None, (X, value))) for value in (1, 1.0, True, "1", None, (1,), ("i", 1))]
    assert len(set(keys)) == len(keys)
    # A text that looks like a number, a list that looks like a tensor, and a number beyond 64 bits.
    assert cost_cache.key(Call("a", None, (("t", (2,)),))) != cost_cache.key(Call("a", None, (Tensor((2,), None, ""),)))
    assert cost_cache.key(Call("a", None, (2**70,))) != cost_cache.key(Call("a", None, (2**71,)))
    assert cost_cache.key(Call("a", None, ())) != cost_cache.key(Call("a", "", ()))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data + b"x",
        lambda data: b"\x00" * 100,
        lambda data: b"{}",
        lambda data: msgspec.msgpack.encode({"schema": 1}),
        lambda data: msgspec.msgpack.encode(["x"] * 6),
        lambda data: b"\x91" * 100_000,
        lambda data: msgspec.msgpack.encode({**msgspec.msgpack.decode(data), "schema": 99}),
        lambda data: msgspec.msgpack.encode(
            {**msgspec.msgpack.decode(data), "calls": {"k": ["", {"bytes_read": "x"}]}}
        ),
    ],
)
def test_a_damaged_file_is_an_empty_cache_and_is_written_anew(saved, damage):
    saved.write_bytes(damage(saved.read_bytes()))
    cache = cost_cache.Cache(saved)
    assert cache.get(cost_cache.key(CALL)) is None
    cache.put("k", COSTED, by_torch=False)
    assert cache.save()
    assert cost_cache.Cache(saved).get("k") == COSTED


def test_a_file_too_large_is_not_read(saved):
    os.truncate(saved, cost_cache.LARGEST + 1)
    assert cost_cache.Cache(saved).get(cost_cache.key(CALL)) is None


def test_a_folder_in_its_place_is_an_empty_cache(tmp_path):
    assert cost_cache.Cache(tmp_path).get("k") is None


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_flipped_byte_never_raises(tmp_path_factory, at, value):
    folder = tmp_path_factory.mktemp("cache")
    cache = cost_cache.Cache(folder / "c")
    cache.put("k", COSTED, by_torch=False)
    cache.save()
    data = bytearray((folder / "c").read_bytes())
    data[at % len(data)] = value
    (folder / "c").write_bytes(data)
    cost_cache.Cache(folder / "c").get("k")


def test_location():
    assert cost_cache.location({"ROOFLINE_CACHE": "/a"}).as_posix() == "/a/costs.msgpack"
    assert cost_cache.location({"XDG_CACHE_HOME": "/b"}).as_posix() == "/b/roofline/costs.msgpack"
    assert cost_cache.location({}).as_posix().endswith("/.cache/roofline/costs.msgpack")
