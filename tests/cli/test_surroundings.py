"""What surrounds a command: with names, encodings, folders and disks of every kind no command ends in a traceback."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade
import pytest
from msgspec.structs import replace

from roofline import __main__, cli
from roofline.cli.options.words import quoted, say
from roofline.core.schema import load, save
from tests.cli.conftest import full

Run = Callable[..., Any]
LONG = "n" * 300

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these are Linux's")


def shell(words: str, folder: Path, variables: dict[str, str], **more: Any) -> subprocess.CompletedProcess[str]:
    """`roofline WORDS`, as a shell in `folder` runs it; what is printed is decoded as UTF-8."""
    line = words.replace("roofline", f"{shlex.quote(sys.executable)} -m roofline")
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        **more,
    )


@pytest.mark.parametrize(
    "words",
    [
        ("show", f"{LONG}.json"),
        ("import", f"{LONG}.json"),
        ("import", "p.json", "-o", f"{LONG}.json"),
        ("import", "p.json", "--device", f"{LONG}.toml"),
        ("import", "p.json", "--capture", LONG),
        ("check", "p.json", "p.json", "--limits", LONG),
        ("compare", f"{LONG}.json", f"{LONG}.json"),
        ("compare", "mlp", "--backends", "torch,jax", "-o", LONG),
        ("plot", "p.json", "-o", f"{LONG}.svg"),
        ("profile", f"{LONG}.py:f", "--backend", "torch"),
        ("profile", "mlp", "--backend", "torch", "-o", f"{LONG}.json"),
        ("whatif", "p.json", "--device", f"{LONG}.json"),
    ],
)
def test_names_too_long(roofline: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    save(handmade.profile(), tmp_path / "p.json")
    ended = roofline(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("roofline: ")
    assert ended.err.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["p.json"]


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252"])
def test_encodings_that_lack_a_character(
    tmp_path: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    def printed(*words: str) -> str:
        """What a command prints on an output of this encoding."""
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as left:
            cli.main(list(words))
        assert not left.value.code
        stream.flush()
        return stream.buffer.getvalue().decode("utf-8", "replace")

    save(handmade.profile(), tmp_path / "p.json")
    monkeypatch.chdir(tmp_path)
    for words in (("show", "p.json"), ("check", "p.json", "p.json")):
        assert "toy" in printed(*words)
        assert "?" not in printed(*words)  # each of our signs has one that all encodings have
    # What a name holds has none; click writes UTF-8 where ASCII is said.
    save(handmade.profile(model="模型"), tmp_path / "p.json")
    assert printed("show", "p.json").startswith("模型 tiny · training" if encoding == "ascii" else "?? ")


@pytest.mark.parametrize("words", ["show p.json", "--help", "models"])
def test_an_output_that_is_full(tmp_path: Path, variables: dict[str, str], words: str) -> None:
    save(handmade.profile(), tmp_path / "p.json")
    ended = shell(f"roofline {words} > /dev/full", tmp_path, variables)
    assert ended.returncode == 2
    assert ended.stderr == "roofline: The output cannot be written: No space left on device.\n"


@pytest.mark.parametrize(
    "words", ["import {}/p.json", "plot {}/p.json -o f.svg", "profile mlp --backend torch --device cpu"]
)
def test_a_folder_that_is_gone(tmp_path: Path, variables: dict[str, str], words: str) -> None:
    save(handmade.profile(), tmp_path / "p.json")
    (tmp_path / "gone").mkdir()
    ended = shell(f"cd gone && rmdir ../gone && roofline {words.format(tmp_path)}", tmp_path, variables)
    assert ended.returncode == 2
    assert ended.stderr.startswith("roofline: ")
    assert ended.stderr.count("\n") == 1
    assert "folder that the command runs in is gone" in ended.stderr or words.startswith("import")


def test_a_disk_that_is_full_takes_no_part_of_a_figure(roofline: Run, tmp_path: Path) -> None:
    save(handmade.profile(), tmp_path / "p.json")
    assert roofline("plot", "p.json", "-o", "f.svg").code == 0
    figure = (tmp_path / "f.svg").stat().st_size
    (tmp_path / "f.svg").unlink()
    with full(figure - 1):
        ended = roofline("plot", "p.json", "-o", "f.svg")
    assert ended.code == 2, ended.err
    assert [file.name for file in tmp_path.iterdir()] == ["p.json"]


def test_files_that_belong_together_are_written_all_or_none(tmp_path: Path) -> None:
    from roofline.core.files import write_together
    from roofline.errors import InputError

    with pytest.raises(InputError, match="No such file"):
        write_together({tmp_path / "f.svg": b"figure", tmp_path / "absent" / "f.txt": b"caption"})
    assert not list(tmp_path.iterdir())


#: Begin a command with this: neither it nor Matplotlib has a folder for what it keeps.
NO_HOME = "env -u ROOFLINE_CACHE -u XDG_CACHE_HOME HOME=/dev/null"


def test_a_home_that_takes_no_file(tmp_path: Path, variables: dict[str, str]) -> None:
    save(handmade.profile(), tmp_path / "p.json")
    ended = shell(f"{NO_HOME} roofline whatif p.json --device h100-sxm", tmp_path, variables)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("name", ["a b", "it's", "$(touch x)", "-rf", "\x1b[31mred", "\u202eabc", "a\nb"])
def test_what_is_printed_to_be_copied_is_one_word_of_a_shell(tmp_path: Path, name: str) -> None:
    told = subprocess.run(
        ["bash", "-c", f"printf %s {quoted(name)}"], cwd=tmp_path, capture_output=True, check=True
    ).stdout.decode()
    assert told in (name, f"./{name}")
    assert quoted(name).isprintable()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["\x1b[31mred.json", "\u202eabc.json", "a\r::error::b.json"])
def test_names_of_files_do_not_act_on_a_terminal(roofline: Run, tmp_path: Path, name: str) -> None:
    ended = roofline("show", name)
    assert ended.code == 2
    assert ended.err.removesuffix("\n").isprintable()
    save(replace(handmade.profile(), model="x"), tmp_path / name)
    ended = roofline("compare", name, name, "--allow")
    assert ended.code == 0
    assert "Next: roofline compare $'" in ended.out
    assert all(character.isprintable() or character == "\n" for character in ended.out)


@pytest.mark.parametrize("text", ["::error::forged", "a ::error file=x::forged", "##[error]forged"])
@pytest.mark.parametrize(
    "words",
    [
        ("show", "p.json"),
        ("show", "p.json", "--details"),
        ("show", "p.json", "--by", "op"),
        ("show", "p.json", "--by", "block"),
        ("show", "p.json", "--format", "markdown"),
        ("show", "p.json", "--format", "latex", "--by", "op"),
        ("compare", "p.json", "p.json", "--allow"),
        ("whatif", "p.json", "--device", "h100-sxm"),
        ("check", "p.json", "p.json", "--counts-only", "--format", "github"),
        ("devices", "p.json"),
    ],
    ids=" ".join,
)
def test_names_give_no_command_to_a_runner_of_ci(roofline: Run, tmp_path: Path, words: Any, text: str) -> None:
    """One begins a line, whatever blanks go before it; the older form counts anywhere in a line."""
    save(handmade.hostile(text), tmp_path / "p.json")
    ended = roofline(*words)
    assert ended.code == 0, ended.err
    assert "forged" in ended.out
    lines = (ended.out + ended.err).splitlines()
    assert not [line for line in lines if line.lstrip().startswith("::") or "##[" in line]


def test_a_file_whose_name_is_no_text_is_imported(roofline: Run, tmp_path: Path) -> None:
    """As one that was made where names are Latin-1: what is no UTF-8 is a question mark in the profile."""
    name = os.fsdecode(b"caf\xe9.json")
    shutil.copy(Path(__file__).parents[1] / "data" / "synthetic_gpu_train.json", tmp_path / name)
    ended = roofline("import", name, "-o", "p.json")
    assert ended.code == 0, ended.err
    facts = load(tmp_path / "p.json").imported
    assert facts is not None
    assert facts.files == ("caf?.json",)


@pytest.mark.parametrize(
    ("words", "code"),
    [("show p.json", 0), ("check p.json slow.json", 1)],
)
def test_a_reader_that_has_gone_changes_no_code(
    tmp_path: Path, variables: dict[str, str], words: str, code: int
) -> None:
    """What cannot be printed is no failed gate, and a failed gate stays one."""
    profile = handmade.profile()
    save(profile, tmp_path / "p.json")
    slow = replace(profile.wall, steps=tuple(2 * step for step in profile.wall.steps))
    save(replace(profile, wall=slow), tmp_path / "slow.json")
    ended = shell(f"roofline {words} | true; exit ${{PIPESTATUS[0]}}", tmp_path, variables)
    assert (ended.returncode, "Traceback" in ended.stderr) == (code, False)


def test_a_setting_of_matplotlib_that_it_refuses(tmp_path: Path, variables: dict[str, str]) -> None:
    save(handmade.profile(), tmp_path / "p.json")
    ended = shell("roofline plot p.json -o f.svg", tmp_path, {**variables, "MPLBACKEND": "nonsense"})
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("roofline: matplotlib does not start (Key backend: 'nonsense'")
    assert ended.stderr.endswith(": unset MPLBACKEND.\n")


def test_an_error_does_not_say_all_that_it_was_given(roofline: Run) -> None:
    ended = roofline("show", "n" * 5000)
    assert ended.code == 2
    assert len(ended.err) < 1600
    assert ended.err.endswith("nnn: File name too long; give the path of a profile.\n")


def test_ctrl_c_while_the_command_line_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stops:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "roofline.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "roofline.cli")
    monkeypatch.setattr(sys, "meta_path", [Stops(), *sys.meta_path])
    with pytest.raises(SystemExit) as left:
        __main__.main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "roofline: Stopped; nothing was written.\n"


def test_an_error_that_cannot_be_told_keeps_its_code(tmp_path: Path, variables: dict[str, str]) -> None:
    ended = shell("roofline check absent.json absent.json 2> /dev/full", tmp_path, variables)
    assert ended.returncode == 2  # and not 1: a failed gate


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("check absent.json absent.json 2>&-", 2),
        ("check p.json p.json 2>&-", 0),
        ("check p.json p.json >&-", 0),
        # One process for this and a figure without a home.
        (f"{NO_HOME} roofline plot p.json -o f.svg <&- >&- 2>&-", 0),
    ],
)
def test_descriptors_that_are_closed(tmp_path: Path, variables: dict[str, str], words: str, code: int) -> None:
    """An error is no result, and a file that is opened next is not taken for standard error."""
    save(handmade.profile(), tmp_path / "p.json")
    ended = shell(words if "roofline" in words else f"roofline {words}", tmp_path, variables)
    assert (ended.returncode, ended.stderr) == (code, "")
    assert bool(ended.stdout) == (words == "check p.json p.json 2>&-")
    if "plot" in words:
        assert (tmp_path / "f.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "[" * 5000 + "]" * 5000, "is not a device file"),
        ('name = "\\u001b[31mred"\nkind = "\\u001b[31mred"\n', "is not a device file"),
    ],
)
def test_a_device_file_says_what_it_is_not(roofline: Run, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "d.toml").write_text(text)
    ended = roofline("devices", "d.toml")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert words in ended.err


def test_warnings_do_not_act_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say("the trace is of \x1b[31mred\nroofline: all is well")
    assert capsys.readouterr().err == "the trace is of ?[31mred?roofline: all is well\n"
