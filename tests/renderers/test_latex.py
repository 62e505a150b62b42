"""LaTeX compiles, whatever names are in it, and nothing runs over: with a real TeX where there is one.

The Debian packages texlive-latex-base and -recommended are 48 MB to fetch and 151 MB on disk, too much for every run of
the tests elsewhere: where there is no pdflatex, what needs it is skipped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import handmade
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.comparison.ranking import rank
from roofline.core import shipped
from roofline.core.schema import load
from roofline.renderers import latex
from roofline.renderers._latex import table
from roofline.renderers._latex.escape import escape, letters, sentences
from roofline.renderers.comparison import latex as comparison

needs_tex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex: apt install texlive-latex-base")
HOSTILE = (
    r'quotes " '  # ' and " are letters of a kernel's name
    "漢字 back\\slash under_score dollar$ percent% hash# and& tilde~ hat^ {brace} <less> |bar| `tick` «guille» ħþŋ"
)
#: A generation on a busy machine, and a training step.
SHIPPED = ("keras-benchmark/gemma-generate-b1-keras-jax", "h100/bert-torch-train-b32-tf32")
DOCUMENT = r"""\documentclass[twocolumn]{article}
\usepackage{booktabs,graphicx}
\usepackage[textwidth=7.1in,columnsep=0.5in]{geometry}
\begin{document}
%s
\end{document}
"""


def compiled(folder: Path, *floats: str, fonts: str = "") -> str:
    """The log of a paper with two columns of 3.3 in that has these floats; it must not stop at an error."""
    text = DOCUMENT.replace("\\begin{document}", fonts + "\\begin{document}") % "\n\\clearpage\n".join(floats)
    (folder / "paper.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=120)
    log = (folder / "paper.log").read_text(errors="replace")
    assert done.returncode == 0, log[-3000:]
    assert (folder / "paper.pdf").stat().st_size > 0
    return log


def hostile_profile(text: str):
    signatures = tuple(replace(one, name=f"{text} {number}") for number, one in enumerate(handmade.SIGNATURES))
    return replace(handmade.hostile(text), signatures=signatures)


@needs_tex
def test_a_paper_with_any_names_compiles_and_nothing_runs_over(tmp_path: Path) -> None:
    profiles = [
        handmade.profile(),
        *map(hostile_profile, (HOSTILE, "W" * 300, "_" * 300, "[0] * of brackets (and (more)", "*")),
        replace(handmade.profile(), profiled=None),  # counted and not timed
        *(load(shipped.paths()[name]) for name in SHIPPED),
    ]
    floats = [
        latex.render(analyze(profile), by, columns=columns, caption=caption)
        for profile in profiles
        for by, columns, caption in (
            (None, 1, "short"),
            ("op", 1, "long"),
            ("kernel", 2, "long"),
            ("scope", 2, "short"),
        )
    ]
    log = compiled(tmp_path, *floats)
    assert "Overfull" not in log
    assert "Missing character" not in log
    assert not re.search("(?m)^!", log)


@needs_tex
def test_a_paper_with_comparisons_compiles_and_nothing_runs_over(tmp_path: Path) -> None:
    one, other = handmade.profile(), handmade.profile(backend="jax")
    odd = hostile_profile(HOSTILE)
    floats = [
        comparison.render(rank(runs, as_given=True, by=by), columns=columns, caption=caption)
        for runs in ([one, other], [one, odd], [one, other, odd])
        for by, columns, caption in ((None, 1, "short"), ("op", 1, "long"), ("class", 2, "long"))
    ]
    log = compiled(tmp_path, *floats)
    assert "Overfull" not in log
    assert not re.search("(?m)^!", log)


@needs_tex
def test_where_the_fonts_are_wide_the_table_is_set_smaller(tmp_path: Path) -> None:
    wide = "\\renewcommand{\\footnotesize}{\\large}\n"
    log = compiled(tmp_path, latex.render(analyze(handmade.profile()), "op", columns=1), fonts=wide)
    assert not re.search(r"Overfull \\hbox .* in (alignment|paragraph)", log)


@needs_tex
def test_every_letter_that_is_not_replaced_can_be_set(tmp_path: Path) -> None:
    body = "\n\n".join(f"{code:04x} {escape(chr(code))}" for code in range(32, 0x250) if chr(code).isprintable())
    log = compiled(tmp_path, body + escape("–−×µ…"))
    assert "Missing character" not in log


def test_what_is_not_latin_is_a_question_mark_and_names_stay_apart() -> None:
    assert letters('a"漢\x1b[31mþ') == 'a"??'
    assert escape(r'_$%#&~^\{}"') == (r"\_\$\%\#\&\textasciitilde{}\textasciicircum{}\textbackslash{}\{\}\char34{}")
    signatures = tuple(
        replace(one, name=name) for one, name in zip(handmade.SIGNATURES, "漢字模型語言機械", strict=False)
    )
    text = latex.render(analyze(handmade.profile(signatures=signatures)), "op")
    names = [line.partition(" & ")[0].strip() for line in text.splitlines() if line.endswith(r"\\")][2:]
    assert len(set(names)) == len(names)


def test_a_long_word_of_a_caption_can_be_broken() -> None:
    assert sentences("short " + "a" * 20) == "short " + "a" * 16 + r"\allowbreak{}aaaa"


def test_labels_are_letters_digits_and_hyphens() -> None:
    assert table.label("bert", "keras-jax:jit=off", "infer", "group") == "tab:bert-keras-jax-jit-off-infer-group"
    assert table.label("漢", "%") == "tab:roofline"
    assert len(table.label("a" * 300)) == 84


def _table(text: str) -> list[list[str]]:
    """Its lines of cells, the heading first."""
    return [line[4:].removesuffix(r" \\").split(" & ") for line in text.splitlines() if line.endswith(r"\\")]


def _caption(text: str) -> str:
    return re.search(r"\\caption\{(.*)\}", text)[1]


def test_one_column_has_minimum_and_time_above_it_and_its_caption_speaks_of_no_other() -> None:
    narrow, wide = (latex.render(analyze(handmade.profile()), None, columns=columns) for columns in (1, 2))
    tops, units = _table(narrow)[:2]
    assert list(zip(tops, units, strict=True))[1:] == [
        *(("time", "ms"), ("min.", r"\%"), ("above", r"\%"), ("limited", "by"), ("of roof", r"\%"))
    ]
    left_out = "known FLOP %, known bytes %, time %, % of busy and FLOP/s vs matmul"
    assert f"% Left out for want of room: {left_out}; --columns 2 has room for more." in narrow
    assert "share of the known work" not in _caption(narrow)
    assert r"Known FLOP \% and known bytes \%: share of the known work" in _caption(wide)
    assert "Left out" not in wide
    assert (r"\begin{table}[t]" in narrow, r"\begin{table*}[t]" in wide) == (True, True)
    for text in (narrow, wide):
        assert r"\label{tab:toy-torch-train-group}" in text
        assert "least time on this device" in _caption(text)


def test_a_column_has_one_unit_and_its_decimal_points_below_each_other() -> None:
    # Ops of the handmade step take between 0.1 and 5 ms, and the step 12.5.
    _, units, *body = _table(latex.render(analyze(handmade.profile()), "op"))
    assert units[1] == "ms"
    times = [row[1] for row in body]
    decimals = {len(time.replace(r"\phantom{", "").rstrip("}").partition(".")[2]) for time in times}
    assert len(decimals) == 1
    assert times[-1] == rf"12.5\phantom{{{'0' * (max(decimals) - 1)}}}"
    numbers = [float(time.partition("\\")[0]) for time in times]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.05)


def test_a_heading_of_one_line_is_one_line() -> None:
    columns = [table.Column("A", ["1", "2"]), table.Column("B", ["x", "y"], number=False)]
    one = table.floated(table.Table("name", columns, lambda room: ["a", "b"]), 1, "Words.", "tab:x")
    assert _table("\n".join(one)) == [["name", "A", "B"], ["a", "1", "x"], ["b", "2", "y"]]
    # A second line was there for a column that has no room.
    wide = table.Column("C\nbelow", ["3" * 60, "4"], rank=1)
    both = table.floated(table.Table("name", [*columns, wide], lambda room: ["a", "b"]), 1, "Words.", "tab:x")
    assert both[1:] == one
    assert both[0].startswith("% Left out for want of room: C below;")


def test_words_take_several_lines_and_are_not_cut() -> None:
    cause = "matmul rate (MKL in torch, oneDNN in jax); A: oneDNN off -> on"
    columns = [table.Column(head, ["1.00 ms"]) for head in ("predicted", "observed", "95 % of it", "more of it")]
    lines = table.floated(table.Table("cause", columns, lambda room: [cause[:room]]), 1, "Words.", "tab:x")
    (name,) = (line.partition(" & ")[0] for line in lines if "matmul" in line)
    written = re.fullmatch(r" *\\parbox\[t\]\{[\d.]+pt\}\{\\raggedright\\hangindent6.0pt (.*)\\strut\}", name)[1]
    assert written.replace(r"\newline{}", " ").replace(r"\textgreater{}", ">") == cause


def test_a_row_that_begins_with_a_bracket_is_no_argument_of_the_one_before() -> None:
    column = table.Column("A", ["1", "2", "3"])
    lines = table.floated(table.Table("name", [column], lambda room: ["[4]", "*", "a"]), 1, "Words.", "tab:x")
    assert [line.strip() for line in lines if "&" in line] == [
        *(r"name & A \\", r"{}[4] & 1 \\", r"{}* & 2 \\", r"a & 3 \\")
    ]


def test_the_caption_says_what_was_measured_how_and_what_to_doubt() -> None:
    profile = handmade.profile(flags=("contended",))
    short, long = (latex.render(analyze(profile), None, caption=each) for each in ("short", "long"))
    for words in (
        "One step of toy tiny training (batch 4 x 25 tokens, fp32) by group of ops; torch 2.13.0, Round Device, 2 "
        "threads.",
        r"Median of 10 steps 12.5~ms (95~\% interval 12.4--12.6~ms), back to back.",
        "The machine was busy with other programs; times are too long.",
    ):
        assert words in _caption(short)
        assert words in _caption(long)
    assert "python 3.11.9" not in _caption(short)
    assert "python 3.11.9" in _caption(long)
    verdict, remarks = short.splitlines()[1:3]
    assert verdict.startswith("% toy train, b4 s25 on Round Device, 2 threads: 12.5 ms per step; ")
    assert "python 3.11.9" in remarks, "what a caption leaves out is in a comment"


def test_estimated_widths_are_not_below_those_of_the_font() -> None:
    # cmr8: a digit is 4.25 pt wide, "W" 9.3, "m" 7.1 (cmr8.tfm, design size 8 pt).
    assert table.width("0") >= 4.25
    assert table.width("m") >= 7.1
    assert table.width("abcdefghijklmnopqrstuvwxyz") == pytest.approx(107, rel=0.12)  # \settowidth says 107.5 pt
