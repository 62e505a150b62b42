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
from roofline.renderers import latex
from roofline.renderers._latex import table
from roofline.renderers._latex.escape import escape, letters, sentences
from roofline.renderers.comparison import latex as comparison

needs_tex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex: apt install texlive-latex-base")
HOSTILE = (
    r'quotes " '  # ' and " are letters of a kernel's name
    "漢字 back\\slash under_score dollar$ percent% hash# and& tilde~ hat^ {brace} <less> |bar| `tick` «guille» ħþŋ"
)
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
    profiles = [handmade.profile(), hostile_profile(HOSTILE), hostile_profile("W" * 300), hostile_profile("_" * 300)]
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


def test_one_column_leaves_columns_out_and_says_so_and_two_have_room() -> None:
    narrow, wide = (latex.render(analyze(handmade.profile()), None, columns=columns) for columns in (1, 2))
    assert "% Left out for want of room: known bytes %, % of busy, minimum %, above % and FLOP/s vs matmul" in narrow
    assert r"\begin{table}[t]" in narrow
    assert "Left out" not in wide
    assert r"\begin{table*}[t]" in wide
    for text in (narrow, wide):
        assert r"\label{tab:toy-torch-train-group}" in text


def test_the_caption_is_short_and_long_on_request() -> None:
    short, long = (latex.render(analyze(handmade.profile()), None, caption=each) for each in ("short", "long"))
    told = {text: re.search(r"\\caption\{(.*)\}", text)[1] for text in (short, long)}
    assert "torch 2.13.0" not in told[short]
    assert "torch 2.13.0" in told[long]
    assert "% FLOP and bytes are shares" in short, "what a caption leaves out is in a comment"


def test_estimated_widths_are_not_below_those_of_the_font() -> None:
    # cmr8: a digit is 4.25 pt wide, "W" 9.3, "m" 7.1 (cmr8.tfm, design size 8 pt).
    assert table.width("0") >= 4.25
    assert table.width("m") >= 7.1
    assert table.width("abcdefghijklmnopqrstuvwxyz") == pytest.approx(107, rel=0.12)  # \settowidth says 107.5 pt
