"""The GitHub Action (action.yml) and the guide's workflow: valid, and its scripts do what the guide says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roofline.core.schema import load

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guides" / "continuous-integration.md").read_text(encoding="utf-8")
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
INPUT = re.compile(r"\$\{\{ inputs\.(\w+) \}\}")


def test_the_action_is_composite_and_every_script_names_its_shell() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" and step["run"] for step in STEPS.values())


def test_inputs_reach_scripts_by_variables_alone() -> None:
    """An input that is written into a script would be run as a part of it."""
    used = {name for step in STEPS.values() for value in step.get("env", {}).values() for name in INPUT.findall(value)}
    assert used == set(ACTION["inputs"])
    assert [name for name, step in STEPS.items() if "${{" in step["run"]] == []


def test_the_guide_has_every_input() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE))
    assert rows == set(ACTION["inputs"])


def test_the_workflow_gives_what_the_action_takes() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    workflow = yaml.safe_load(text)
    assert workflow[True] == "pull_request"  # YAML 1.1 reads the key `on` so; GitHub does not mind
    (job,) = workflow["jobs"].values()
    assert job["permissions"] == {"contents": "read"}
    (given,) = [step["with"] for step in job["steps"] if "/roofline@" in step.get("uses", "")]
    assert set(given) <= set(ACTION["inputs"])
    needed = {name for name, said in ACTION["inputs"].items() if said.get("required")}
    assert needed <= set(given)
    last = job["steps"][-1]["with"]["path"]
    assert last == ACTION["inputs"]["output"]["default"]


def run(name: str, folder: Path, variables: dict[str, str], **inputs: str) -> subprocess.CompletedProcess[str]:
    """A step of the action, with its inputs as GitHub fills them in."""
    values = {key: str(said.get("default", "")) for key, said in ACTION["inputs"].items()} | inputs
    step = STEPS[name]
    given = {key: INPUT.sub(lambda found: values[found[1]], value) for key, value in step.get("env", {}).items()}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # GitHub's own words for `shell: bash`
        cwd=folder,
        env={**os.environ, **variables, **given, "PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_its_scripts_profile_judge_and_tell(tmp_path: Path, variables: dict[str, str], brief: dict[str, str]) -> None:
    pytest.importorskip("torch")
    variables |= brief
    (tmp_path / "a step.py").write_text(
        "import torch\n\n"
        "def make_step(batch=8):\n"
        "    w = torch.ones(9, 9)\n"
        "    return lambda: torch.ones(batch, 9) @ w\n"
    )
    given = {"step": "a step.py:make_step", "arguments": "--batch 4 --threads 1", "baseline": "base line.json"}
    profiled = run("Profile the step", tmp_path, variables, **given)
    assert profiled.returncode == 0, profiled.stderr
    current = load(tmp_path / "roofline-current.json")
    assert sum(op.launches or 0 for op in current.ops) > 0
    assert current.batch == 4

    (tmp_path / "base line.json").write_bytes((tmp_path / "roofline-current.json").read_bytes())
    passed = run("Judge it by the baseline", tmp_path, variables, **given)
    assert passed.returncode == 0, passed.stderr

    # A baseline that has one op less: the change does one more.
    less = msgspec.structs.replace(current, ops=current.ops[:-1], storages=None)
    (tmp_path / "base line.json").write_bytes(msgspec.json.encode(less))
    failed = run("Judge it by the baseline", tmp_path, variables, **given)
    assert failed.returncode == 1, failed.stdout
    assert "::error" in failed.stdout
    assert "kernels" in failed.stdout

    (tmp_path / "limits.toml").write_text('kernels = 9\nbytes = "1000%"\n')
    allowed = run("Judge it by the baseline", tmp_path, variables, **given, limits="limits.toml")
    assert "kernels" not in "".join(line for line in allowed.stdout.splitlines() if line.startswith("::error"))

    told = run("Put the table into the summary", tmp_path, variables, **given)
    assert told.returncode == 0, told.stderr
    assert "| matmul |" in (tmp_path / "summary.md").read_text(encoding="utf-8")
