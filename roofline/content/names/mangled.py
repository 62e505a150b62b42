"""Read the words of a mangled C++ name (`_Z...`, Itanium ABI) in order, without expanding it.

No demangler is asked. A name may refer to its earlier parts, so that 220 letters of a trace make 71 MB of C++:
cpp_demangle 0.1.3 and pydemumble 0.1.1 write them in 4 and 7 s, and 646 letters need more memory than there is
(measured with nested `A<S_, S_>`). Reading the letters takes a time that grows with the length alone.
"""

from __future__ import annotations

import re

#: What counts no letters: substitutions (`S_`, `S1_`, `St`), template parameters (`T_`), and types with two letters.
_SKIPPED = re.compile(r"S[0-9A-Z]*_|S[tabsiod]|T[0-9]*_")
#: A literal (`Li4E`, `Lb1E`, `Lm256E`; n is minus) or the value of an enumerator (`...EnumE1E`).
_LITERAL = re.compile(r"(?:L(?P<kind>[a-z])|E)(?P<value>n?\d+)E")
_TYPE = re.compile(r"DF16b|Dh")
_TYPES = {"DF16b": "bf16", "Dh": "fp16"}
_LENGTH = re.compile(r"\d+")
#: Inner names of C++ that say nothing.
_GLOBAL = "_GLOBAL__N_1"


def readable(name: str) -> str:
    """Write `name<word, ...>`: the name, then the names, types of half precision and literals behind it."""
    words = list(_words(name))
    place = next((number for number, (_, nested) in enumerate(words) if not nested), None)
    if place is None:
        return name
    # Namespaces come first and the function last, before its arguments, where "I" opens them.
    while place + 1 < len(words) and not words[place + 1][1]:
        place += 1
    arguments = [word for word, _ in words[place + 1 :]]
    return f"{words[place][0]}<{', '.join(arguments)}>" if arguments else words[place][0]


def _words(name: str) -> list[tuple[str, bool]]:
    """List each word with whether it stands in arguments, which begin after the first "I"."""
    words: list[tuple[str, bool]] = []
    at, nested = len("_Z"), False
    while at < len(name):
        if length := _LENGTH.match(name, at):
            end = length.end() + int(length[0][:4])  # no name of a trace is longer than that
            word = name[length.end() : end]
            if word and word != _GLOBAL:
                words.append((word, nested))
            at = end
        elif skipped := _SKIPPED.match(name, at):
            at = skipped.end()
        elif literal := _LITERAL.match(name, at):
            value = literal["value"].replace("n", "-")
            if literal["kind"]:
                value = {"0": "false", "1": "true"}.get(value, value) if literal["kind"] == "b" else value
                words.append((value, nested))
            elif words:  # of the enumeration that was named before it
                words[-1] = (f"{words[-1][0]}={value}", nested)
            at = literal.end()
        elif half := _TYPE.match(name, at):
            words.append((_TYPES[half[0]], nested))
            at = half.end()
        else:
            nested = nested or name[at] == "I"
            at += 1
    return words
