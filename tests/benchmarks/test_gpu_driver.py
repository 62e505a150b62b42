"""The driver of `make gpu` with commands that take no time: broken off and taken up again, it repeats nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import piece
import pytest
import results
import wheels
from execute import MOST_LOG, execute, shorten
from item import Item, Setting

SETTING = Setting(device="cpu", size="tiny")
GPU = Path(piece.__file__).parent

#: Three items, each of which leaves a line in a file when it begins. The second one sleeps when it is begun first.
DRIVER = """
import signal, sys, time
from pathlib import Path
sys.path.append("GPU")
import piece, results, run
from item import Item, Setting

here = Path("HERE")
scripts = {
    "first": "echo first >> HERE/begun; echo x > {out}/first",
    "slow": "echo slow >> HERE/begun; test -f HERE/pid || (echo $$ > HERE/pid; sleep 60); echo x > {out}/slow",
    "last": "echo last >> HERE/begun; echo x > {out}/last",
}
items = [
    Item(name=name, command=("sh", "-c", words), seconds=1, limit=90, outputs=(name,))
    for name, words in scripts.items()
]
signal.signal(signal.SIGTERM, run._leave)
results.unpack("toy", here / "work", [here / "out"])
one = piece.Run(
    setting=Setting(device="cpu", size="tiny"),
    work=here / "work",
    out=here / "out",
    site=here / "none",
    end=time.monotonic() + 80,
)
print("left", piece.run("toy", items, one), flush=True)
"""


def begin(folder: Path) -> subprocess.Popen[str]:
    script = folder / "driver.py"
    script.write_text(DRIVER.replace("GPU", str(GPU)).replace("HERE", str(folder)), encoding="utf-8")
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)


def wait_for(file: Path) -> str:
    """What is in a file when it has come."""
    for _ in range(3000):
        if file.exists() and (text := file.read_text(encoding="utf-8")):
            return text
        time.sleep(0.02)
    raise AssertionError(f"{file} never came")


def gone(pid: int) -> bool:
    """Whether a process has ended, or is ending, or waits for somebody to ask how it ended."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killed_in_the_middle_it_goes_on_with_what_it_was_doing(tmp_path: Path, number: signal.Signals) -> None:
    driver = begin(tmp_path)
    pid = int(wait_for(tmp_path / "pid"))
    driver.send_signal(number)
    driver.communicate(timeout=30)
    if number == signal.SIGKILL:  # which leaves what was running; the machine would end it
        os.killpg(pid, signal.SIGKILL)
    assert gone(pid)
    state = json.loads((tmp_path / "work" / "toy" / "state.json").read_text(encoding="utf-8"))
    assert {name: entry["how"] for name, entry in state["items"].items()} == {"first": "well", "slow": "begun"}
    # On another machine there is the archive, and nothing else.
    shutil.rmtree(tmp_path / "work")
    out, _ = begin(tmp_path).communicate(timeout=60)
    assert "left 0" in out
    assert (tmp_path / "begun").read_text(encoding="utf-8").split() == ["first", "slow", "slow", "last"]
    out, _ = begin(tmp_path).communicate(timeout=60)
    assert "nothing is left to run" in out
    assert (tmp_path / "begun").read_text(encoding="utf-8").split() == ["first", "slow", "slow", "last"]


def here(folder: Path, seconds: float = 60, again: str | None = None) -> piece.Run:
    return piece.Run(
        setting=SETTING,
        work=folder / "work",
        out=folder / "out",
        site=folder / "none",
        end=time.monotonic() + seconds,
        again=again,
    )


def shell(name: str, words: str, **more: object) -> Item:
    item = Item(name=name, command=("sh", "-c", words), seconds=1, limit=30)
    return replace(item, **more)  # type: ignore[arg-type]


def entries(folder: Path) -> dict[str, str]:
    state = json.loads((folder / "work" / "toy" / "state.json").read_text(encoding="utf-8"))
    return {name: f"{entry['how']} {entry['why']}".strip() for name, entry in state["items"].items()}


def test_what_failed_is_kept_with_its_log_and_repeated_only_when_asked(tmp_path: Path) -> None:
    items = [
        shell("code", "echo why >&2; exit 3"),
        shell("absent", "true", outputs=("result.json",)),
        shell("long", "sleep 60", limit=0.1),
        shell("after", "true", needs=("code",)),
    ]
    assert piece.run("toy", items, here(tmp_path)) == 1  # the one that waits for one that failed
    assert entries(tmp_path) == {
        "code": "failed exit 3",
        "absent": "failed left no result.json",
        "long": "failed took longer than 0 s",
    }
    logs = tmp_path / "work" / "toy" / "logs"
    assert (logs / "code.log").read_text(encoding="utf-8") == "why\n"
    items[0] = replace(items[0], command=("sh", "-c", "echo well; exit 3"))  # another command is another item
    piece.run("toy", items, here(tmp_path))
    assert (logs / "code.log").read_text(encoding="utf-8") == "well\n"
    assert (logs / "code.1.log").read_text(encoding="utf-8") == "why\n"
    piece.run("toy", items, here(tmp_path))
    assert not (logs / "code.2.log").exists()
    piece.run("toy", items, here(tmp_path, again=""))
    assert (logs / "code.2.log").exists()
    assert (logs / "absent.1.log").exists()


def test_what_no_time_is_left_for_is_left_and_no_failure(tmp_path: Path) -> None:
    items = [shell("cut", "sleep 60", seconds=0), shell("never", "true", seconds=1000)]
    assert piece.run("toy", items, here(tmp_path, seconds=0.5)) == 2
    assert entries(tmp_path) == {"cut": "begun"}


def test_what_belongs_to_the_machine_is_found_once_a_run(tmp_path: Path) -> None:
    each = shell("environment", f"echo x >> {tmp_path}/begun; echo here", each=True, stdout="environment.json")
    run = here(tmp_path)
    for name in ("toy", "other"):
        piece.run(name, [each, shell("one", "true")], run)
        assert (tmp_path / "work" / name / "environment.json").read_text(encoding="utf-8") == "here\n"
    assert (tmp_path / "begun").read_text(encoding="utf-8") == "x\n"
    piece.run("toy", [each, shell("two", "true")], here(tmp_path))  # a later run, perhaps on another machine
    assert (tmp_path / "begun").read_text(encoding="utf-8") == "x\nx\n"


def test_a_rehearsal_is_no_measurement(tmp_path: Path) -> None:
    piece.run("toy", [shell("one", "true")], here(tmp_path))
    with pytest.raises(ValueError, match="give another --work"):
        piece.run("toy", [shell("one", "true")], replace(here(tmp_path), setting=Setting()))


def test_a_machine_without_a_gpu_leaves_out_what_needs_one(tmp_path: Path) -> None:
    assert piece.run("toy", [shell("gpu", "true", machine=("gpu",))], here(tmp_path)) == 0
    assert not (tmp_path / "work" / "toy" / "state.json").exists()


def test_all_that_a_command_started_ends_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = ["sh", "-c", f"sleep 60 & echo $! > {tmp_path}/pid; sleep 60"]
    ended = execute(words, tmp_path, os.environ, 0.5, log, None)
    assert ended.code is None
    assert gone(int((tmp_path / "pid").read_text(encoding="utf-8")))


def test_a_long_log_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"begin" + b"." * MOST_LOG + b"end")
    shorten(log)
    text = log.read_bytes()
    assert text.startswith(b"begin")
    assert text.endswith(b"end")
    assert b"[... 8 bytes left out ...]" in text


def test_an_archive_holds_the_piece_and_nobody(tmp_path: Path) -> None:
    import tarfile

    (tmp_path / "toy" / "logs").mkdir(parents=True)
    (tmp_path / "toy" / "logs" / "one.log").write_text("said", encoding="utf-8")
    archive = results.pack(tmp_path / "toy", tmp_path / "out")
    with tarfile.open(archive) as file:
        assert [(entry.name, entry.uname, entry.uid) for entry in file] == [("toy/logs/one.log", "", 0)]
    assert results.unpack("toy", tmp_path / "new", [tmp_path / "none", tmp_path / "out"]) == archive
    assert (tmp_path / "new" / "toy" / "logs" / "one.log").read_text(encoding="utf-8") == "said"
    assert results.unpack("toy", tmp_path / "new", [tmp_path / "out"]) is None


# Wheels


def test_each_wheel_has_one_version() -> None:
    assert all(line.count("==") == 1 for line in wheels.requirements())


def test_a_wheel_of_another_tree_is_refused(tmp_path: Path) -> None:
    """One as this checkout would make it, then with one file changed and one that is no longer here."""

    def write(**changed: bytes) -> Path:
        wheel = tmp_path / "roofline-0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for source, target in wheels.INSTALLED.items():
                for path in (wheels.ROOT / source).rglob("*"):
                    name = f"{target}/{path.relative_to(wheels.ROOT / source).as_posix()}"
                    if path.suffix in (".py", ".toml") and "__pycache__" not in path.parts:
                        archive.writestr(name, changed.pop(name, path.read_bytes()))
            for name, text in changed.items():
                archive.writestr(name, text)
        return wheel

    assert wheels.differences(write()) == []
    wheel = write(**{"roofline/units.py": b"", "roofline/gone.py": b""})
    assert wheels.differences(wheel) == ["roofline/gone.py", "roofline/units.py"]
    with pytest.raises(ValueError, match="make gpu-wheels"):
        wheels.install(tmp_path, tmp_path / "site")
