"""Whether a float of LaTeX is what a renderer may write: its frame, comments of one line, and escaped text."""

from __future__ import annotations

import re

#: Lines that nothing of a profile is in.
_FRAME = (
    r"\\begin\{table\*?\}\[t\]",
    r"\\centering\\sloppy",
    r"\\label\{tab:[a-z0-9-]+\}",
    r"\\footnotesize\\setlength\{\\tabcolsep\}\{[\d.]+pt\}",
    r"\\resizebox\{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi\}\{!\}\{%",
    r"\\begin\{tabular\}\{@\{\}l[lr]+@\{\}\}",
    r"\\(top|mid|bottom)rule",
    r"\\end\{tabular\}\}",
    r"\\end\{table\*?\}",
)
#: Commands that text is made of.
_LETTERS = {
    *("textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar", "textmu", "ldots"),
    *("char", "times", "allowbreak", "le", "ge", "newline"),
}
#: What the writer puts around text: a name in several lines, and the room of decimals that a number lacks.
_SET = re.compile(
    r"\\parbox\[t\]\{[\d.]+pt\}\{\\raggedright\\hangindent[\d.]+pt (.*?)\\strut\}(?= & |$)|\\phantom\{\.?0*\}"
)


def check(text: str) -> None:
    """Fails where a name of a profile could act on LaTeX, or where a table has rows of unequal length."""
    assert all(ord(c) < 0x180 or line.startswith("% ") for line in text.splitlines() for c in line)
    columns = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("% ") or any(re.fullmatch(each, line) for each in _FRAME):
            columns += [[]] if line.startswith(r"\begin{tabular}") else []
            continue
        caption = re.fullmatch(r"\\caption\{(.*)\}", line)
        row = re.fullmatch(r"(.*) \\\\", line)
        assert caption or row, f"neither a caption nor a row: {line}"
        told = _SET.sub(lambda text: text[1] or "", (caption or row)[1].removeprefix("{}"))
        assert set(re.findall(r"\\([a-zA-Z]+)", told)) <= _LETTERS
        bare = re.sub(r"\\[&%$#_{}]|\\[a-z]+\d*\{\}|\$-\$|\$\\(?:times|le|ge)\$|(?<=\d)~(?=\\|m?s|n)", "", told)
        assert not re.search(r"[\\%$#_^~<>|{}]", bare), bare
        if row:
            columns[-1].append(bare.count("&"))
        else:
            assert "&" not in bare
    assert columns
    assert all(len(set(each)) == 1 for each in columns)
