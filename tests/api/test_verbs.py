"""The verbs in Python: what they take, and that they refuse what the command line refuses."""

from __future__ import annotations

from pathlib import Path

import handmade
import pytest
from msgspec.structs import replace

import roofline
from roofline import devices
from roofline.errors import GateError, InputError


def test_a_path_will_do_for_a_profile(tmp_path: Path) -> None:
    profile, path = handmade.profile(), tmp_path / "p.json"
    roofline.save(profile, path)
    assert str(roofline.compare(path, str(path))) == str(roofline.compare(profile, profile))
    assert roofline.whatif(path, "a100-40gb").seconds == roofline.whatif(profile, "a100-40gb").seconds
    with pytest.raises(InputError, match="int is no run"):
        roofline.compare(profile, 7)  # type: ignore[arg-type]


def test_a_step_of_several_devices_is_projected_to_as_many() -> None:
    sheet = devices.load("a100-40gb")
    measured = {name: replace(one, value=one.value * 0.9, spread=0.01) for name, one in sheet.ceilings.items()}
    one = replace(sheet, name="NVIDIA A100-SXM4-40GB", ceilings=measured)
    profile = replace(handmade.profile(), device=one.together(4))
    found = roofline.whatif(profile, "h100-sxm")
    assert (found.there.name, found.there.number) == ("4 x NVIDIA H100 SXM", 4)
    assert not found.sheet, "the datasheet of one stands for what was measured of four"
    assert roofline.whatif(profile, one).speedup == pytest.approx(1)
    assert roofline.whatif(replace(profile, device=replace(profile.device, memory=None)), one).speedup == pytest.approx(
        1
    )
    ops = tuple(replace(op, own_ns=(), start_ns=0) for op in profile.ops)
    assert roofline.whatif(replace(profile, profiled=None, ops=ops), "h100-sxm").device.number == 4


def test_other_work_is_refused_by_the_name_that_python_has_for_it() -> None:
    profile = handmade.profile()
    other = replace(profile, model="another", parameters=1, ops=profile.ops[:1])
    with pytest.raises(GateError, match="allow=True, which keeps") as told:
        roofline.compare(profile, other)
    assert "--allow" not in str(told.value)
    assert "not comparable" in str(roofline.compare(profile, other, allow=True)).lower()


def test_a_gate_that_fails_is_no_exception() -> None:
    profile = handmade.profile()
    worse = replace(profile, ops=(*profile.ops, profile.ops[-1]))
    found = roofline.check(profile, worse, counts_only=True)
    assert not found.passed
    assert isinstance(found.error, GateError)
    assert set(found.to_pandas().query("status == 'failed'").measure) >= {"kernels"}
    assert roofline.check(profile, worse, profile, counts_only=True, max_kernels="1", max_bytes="100%").profiles
    with pytest.raises(InputError, match="at least one run"):
        roofline.check(profile)
    with pytest.raises(InputError, match="max_time"):
        roofline.check(profile, profile, max_time="much")


def test_a_figure_is_refused_before_it_is_shown(tmp_path: Path) -> None:
    profile = handmade.profile()
    assert roofline.plot(profile, kind="breakdown").save(tmp_path / "f.svg").read_bytes().startswith(b"<?xml")
    with pytest.raises(InputError, match="no kind of figure"):
        roofline.plot(profile, kind="pie")
    with pytest.raises(InputError, match="at least one"):
        roofline.plot()


def test_a_page_is_its_text_and_a_notebook_shows_its_size(tmp_path: Path) -> None:
    page = roofline.report(handmade.profile(), output=tmp_path / "page.html")
    assert page.startswith("<!doctype html>")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert repr(page) == f"<a page for a browser, {len(page.encode()) / 1e3:.0f} kB: write it to a file and open that>"
