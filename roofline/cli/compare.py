"""Explain why one run is faster than another: `roofline compare`."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from roofline import plugins
from roofline.cli.options import completion, presets, tables
from roofline.cli.options.ceilings import CEILINGS, given_ceilings
from roofline.cli.options.paths import STDIN, check_once, check_output, check_writable, load, path_name, save_measured
from roofline.cli.options.request import DEFAULTS, check_choice, make_request, parse_backend
from roofline.cli.options.terminal import Width
from roofline.cli.options.words import KEPT, calibrating, if_long, quoted, say
from roofline.core.step import PRECISIONS
from roofline.errors import GateError, InputError, RooflineError
from roofline.units import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roofline.comparison.ranking import Ranking
    from roofline.core.schema import Profile
    from roofline.measuring.rounds import Candidate
    from roofline.recording.request import Request

#: Files that the next command is written out with. By choice: the ten backends of one model, and two more.
_RUNS = 12


class _Filling(NamedTuple):
    """Hold a preset to fill in: its name, the options that the user set, and whether only the bare step is measured."""

    name: str
    explicit: frozenset[str]
    core: bool


_RENDERERS = "roofline.renderers.comparison"
_OF_PRESETS = "roofline.renderers.preset"
_FORMATS = "|".join(plugins.names(_RENDERERS))


def command(
    context: typer.Context,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROFILE...|MODEL",
            autocompletion=completion.runs,
            help="Saved profiles or names of shipped ones; - reads one from standard input. With --backends: one "
            "model. With --preset and no profile: the shipped profiles of that benchmark.",
        ),
    ] = None,
    backends: Annotated[
        str | None,
        typer.Option(
            metavar="A,B:OPT=VAL,...",
            autocompletion=completion.backends_listed,
            help="Measure MODEL on these backends, in turns, and compare them.",
        ),
    ] = None,
    mode: Annotated[str, typer.Option(help="With --backends: infer, train or generate.")] = DEFAULTS.mode,
    batch: Annotated[int | None, typer.Option(help="With --backends: samples per step.")] = None,
    seq: Annotated[int | None, typer.Option(help="With --backends: tokens per sample.")] = None,
    new_tokens: Annotated[
        int | None,
        typer.Option("--new-tokens", help="With --backends and --mode generate: tokens to generate per sample."),
    ] = None,
    size: Annotated[str, typer.Option(help="With --backends: tiny, base, ...")] = DEFAULTS.size,
    layers: Annotated[
        int | None, typer.Option(help="With --backends: number of layers. Default: that of the size.")
    ] = None,
    precision: Annotated[str, typer.Option(help=f"With --backends: {', '.join(PRECISIONS)}.")] = DEFAULTS.precision,
    device: Annotated[str, typer.Option(help="With --backends: auto, cpu or cuda.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="With --backends: CPU threads.")] = None,
    steps: Annotated[int | None, typer.Option(help="With --backends: plain steps per process.")] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Most turns in fresh processes. Default: 12; stops earlier when it is settled which run is faster. 1 "
            "takes no turns."
        ),
    ] = None,
    input: Annotated[str, typer.Option(help="With --backends: where the inputs are: device or host.")] = DEFAULTS.input,
    no_optimizer: Annotated[
        bool, typer.Option("--no-optimizer", help="With --backends: leave the optimizer out of training.")
    ] = False,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"{presets.HELP} With saved profiles: print a paragraph per row of that benchmark (formats text, "
            "markdown, json).",
        ),
    ] = None,
    core: Annotated[bool, typer.Option("--core", help=presets.CORE)] = False,
    ceilings: Annotated[str | None, typer.Option(metavar="FILE", help=f"{CEILINGS} Only with --backends.")] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="DIR", help="With --backends: the folder for the profiles."),
    ] = None,
    allow: Annotated[
        bool, typer.Option("--allow", help="Continue if the runs are not comparable, and mark every output.")
    ] = False,
    rerun: Annotated[
        bool,
        typer.Option(
            "--again", help="Run the steps of saved profiles again, in turns, and save the times in the profiles."
        ),
    ] = False,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove", help="Test rows: toggle the setting behind each one, run again in turns, and print the change."
        ),
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            autocompletion=completion.keys,
            help="Show the ops by class|group|op|scope|block|phase|kernel|source. Default with --details: by phase "
            "and block, or by class if the runs have no blocks in common.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show all rows of the account.")] = False,
    row: Annotated[int | None, typer.Option("--row", metavar="N", help="Show the ops of row N in both runs.")] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Also show the difference by phase and block, and how it adds up.")
    ] = False,
    why: Annotated[
        bool, typer.Option("--why", help="Also show what was merged into each row and what was left out.")
    ] = False,
    width: Width = None,
    columns: tables.Columns = None,
    caption: tables.Caption = None,
    format: Annotated[
        str,
        typer.Option(metavar="FORMAT", autocompletion=completion.formats(_RENDERERS), help=f"The format: {_FORMATS}."),
    ] = "text",
    force: Annotated[bool, typer.Option("--force", help="Overwrite profiles in the output folder.")] = False,
) -> None:
    """Explain why one run is faster than another.

    Check first that the runs do the same work. Compare two profiles in the order given, A - B, and each of more
    with the fastest. If runs are not comparable, print why and exit with 1 (see --allow).

    Example: roofline compare bert --backends torch,jax,keras-jax:jit=off
    """
    by_rows = preset is not None and backends is None
    renderer = plugins.load(_OF_PRESETS if by_rows else _RENDERERS, format, "format")
    _check_key(by)
    view = None if by_rows else _view(every, row, why, details or (by is not None and format == "text"))
    extra = tables.arguments(renderer, format, view=view, width=width, columns=columns, caption=caption)
    asked: dict[str, Any] = {
        "mode": mode,
        "batch": batch,
        "seq": seq,
        "new_tokens": new_tokens,
        "size": size,
        "layers": layers,
        "precision": precision,
        "device": device,
        "threads": threads,
        "steps": steps,
        "input": input,
        "optimizer": not no_optimizer,
    }
    _check_turns(rounds, rerun, backends)
    requests: Sequence[Request | str] = ()
    if backends is None:
        unused = {} if rerun or prove else {"rounds": rounds}
        _refuse_options({**asked, **unused, "ceilings": ceilings, "output": output, "force": force, "core": core})
        if preset is not None:
            _refuse_beside_preset(
                {
                    **{"--allow": allow, "--again": rerun, "--prove": prove, "--by": by is not None},
                    **{"--all": every, "--row": row is not None, "--why": why, "--details": details},
                }
            )
        paths = _paths(runs or [], preset)
        profiles = _load(paths)
        if preset is not None:
            from roofline.published.presets import compared

            tables.write(renderer.render(compared.rows(preset, profiles), **extra), extra)
            return
    else:
        if not runs:
            raise InputError("--backends needs a MODEL: give one.")
        if len(runs) != 1:
            raise InputError(f"--backends takes one MODEL, and {len(runs)} are given: leave the others out.")
        presets.check_core(core, preset)
        filling = None if preset is None else _Filling(preset, presets.explicit_options(context, asked), core)
        paths, profiles, requests = _measure(runs[0], backends, asked, rounds, output, force, filling, ceilings)

    from roofline.api.compare import refusal
    from roofline.cli.options import turns
    from roofline.comparison.ranking import rank

    with if_long(f"comparing {len(profiles)} profiles"):
        ranking = rank(profiles, as_given=backends is None, by=by)
    if row is not None and len(profiles) > 2:
        raise InputError(f"--row needs two profiles, and {len(profiles)} are compared: give two.")
    refused = None if allow else refusal(ranking)
    if refused is not None:
        raise GateError(refused)
    if backends is None and (rerun or prove):
        requests = turns.requests_of(profiles, ranking.names, say, needed=rerun)
    if turns.are_wanted(ranking, requests, rounds, rerun=rerun, asked=rerun or prove or backends is not None):
        profiles = turns.settle(paths, profiles, ranking.names, requests, say, rounds)
        ranking = rank(profiles, as_given=backends is None, by=by)
    if prove:
        ranking = turns.prove(ranking, say, requests, rounds)
    tables.write(renderer.render(ranking, **extra), extra)
    if format == "text" and row is None:
        _next(paths, ranking, allow)


def _view(every: bool, row: int | None, why: bool, details: bool) -> Any:
    """Return the requested view of the account; None for the default."""
    from roofline.content.comparison.account_rows import View

    asked = View(every, row, why, details)
    return None if asked == View() else asked


def _check_turns(rounds: int | None, rerun: bool, backends: str | None) -> None:
    if rounds is not None and rounds < 1:
        raise InputError(f"--rounds {rounds} is not possible: give at least 1.")
    if rerun and backends is not None:
        raise InputError("--again is for saved profiles: leave it out; --backends measures in turns anyway.")


def _check_key(by: str | None) -> None:
    from roofline.analysis.analysis import KEYS

    if by is not None and by not in KEYS:
        raise InputError(f"There is no table by {by!r}; there are: {', '.join(KEYS)}.")


# ------------------------------------------------------------------------------------------------- saved profiles

_SPELLED = {"optimizer": "--no-optimizer", "output": "-o"}


def _refuse_options(chosen: dict[str, Any]) -> None:
    """Refuse options of measuring for saved profiles: ignored silently, they would mislead. Raises InputError."""
    defaults = {name: option.default for name, option in signature(command).parameters.items()}
    defaults["optimizer"] = not defaults["no_optimizer"]
    for name, value in chosen.items():
        if value != defaults[name]:
            raise InputError(
                f"{_SPELLED.get(name, f'--{name}')} is for measuring: leave it out, or give one MODEL and --backends."
            )


def _refuse_beside_preset(chosen: dict[str, bool]) -> None:
    """Refuse options that belong to two runs, and not to the rows of a preset. Raises InputError."""
    for option in (option for option, is_set in chosen.items() if is_set):
        raise InputError(
            f"{option} cannot be combined with --preset of saved profiles: leave it out, or compare two runs without "
            "--preset."
        )


def _paths(runs: list[str], preset: str | None) -> list[Path]:
    """List the named profiles; if none is named, the shipped ones of the preset."""
    from roofline.core import shipped
    from roofline.published import presets as published_presets

    if preset is not None:
        published_presets.load(preset)  # an unknown one is refused before anything is read
    if runs or preset is None:
        return [Path(run) for run in runs]
    return [path for name, path in shipped.paths().items() if name.startswith(f"{preset}/")]


def _load(paths: list[Path]) -> list[Profile]:
    from roofline.comparison.ranking import check_timed
    from roofline.core import shipped

    check_once(paths)
    for path in paths:
        if path.is_dir():
            raise InputError(f"{path} is a folder: name the profiles in it, as in {path / '*.json'}.")
        if path != STDIN and path.suffix != ".json" and shipped.locate(path) is None and not shipped.alike(path):
            raise InputError(f"There is no file {path}; to measure a model, add --backends a,b.")
    if not paths:
        raise InputError("There is nothing to compare: give two or more profiles, or one MODEL and --backends a,b.")
    if len(paths) < 2:
        raise InputError("Only one profile is given: give two or more, or one MODEL and --backends a,b.")
    with if_long(f"reading {len(paths)} profiles"):
        profiles = [load(path) for path in paths]
    for path, profile in zip(paths, profiles, strict=True):
        check_timed(profile, path_name(path))
    return profiles


# ------------------------------------------------------------------------------------------------------- measuring


def _measure(
    model: str,
    backends: str,
    asked: dict[str, Any],
    rounds: int | None,
    output: str | None,
    force: bool,
    preset: _Filling | None,
    ceilings: str | None,
) -> tuple[list[Path], list[Profile], list[Request]]:
    """Measure a model on each backend and save the profiles; check all arguments before.

    preset: its name and the user's own options. ceilings: the file that holds them, None for this machine's.
    Returns the files, the profiles and the requests.
    """
    from roofline.comparison.turns import MOST
    from roofline.measuring.rounds import keep_installed, measure, plan

    names = split_backends(backends)
    if len(names) < 2:
        raise InputError("Only one backend is given: give two or more, as in --backends torch,jax.")
    for name in names:
        parse_backend(name)  # an unknown name is a slip of the keyboard, and no backend to leave out
    candidates = keep_installed(_candidates(model, names, asked, preset), say)
    folder = _folder(output, candidates[0])
    files = _files(folder, candidates, force)
    given_device = given_ceilings(ceilings, candidates[0].request)
    for words in plan(candidates, MOST if rounds is None else rounds):
        say(words)
    say(f"Profiles go to {printable(folder)}.")
    measured = measure(candidates, say=say, progress=calibrating, given_device=given_device)
    folder.mkdir(exist_ok=True)
    for place, profile in measured.items():
        files[place] = save_measured(profile, files[place], force)
        say(f"Wrote {printable(files[place])}")
    KEPT.append(f"{quoted(folder)} has the profiles that were measured")
    requests = [candidates[place].request for place in measured]
    return [files[place] for place in measured], list(measured.values()), requests


def split_backends(text: str) -> list[str]:
    """Split "a,b:opt=val,more=val,c" into a, b:opt=val,more=val and c: a part with "=" and no name continues one."""
    backends: list[str] = []
    for part in filter(None, (word.strip() for word in text.split(","))):
        if backends and "=" in part and ":" not in part.partition("=")[0]:
            backends[-1] += ("," if ":" in backends[-1] else ":") + part
        else:
            backends.append(part)
    return backends


def _candidates(model: str, names: list[str], asked: dict[str, Any], preset: _Filling | None) -> list[Candidate]:
    """Make candidates of the backends that know the model; name the others."""
    from roofline.measuring.rounds import Candidate, leave_out

    check_choice("precision", asked["precision"], PRECISIONS)
    candidates: list[Candidate] = []
    remaining = len(names)
    for name in names:
        try:
            candidates.append(Candidate(name, _request(model, name, asked, preset)))
        except RooflineError as error:
            remaining -= 1
            leave_out(name, error, remaining, say)
    return candidates


def _request(model: str, backend: str, asked: dict[str, Any], preset: _Filling | None) -> Request:
    if preset is None:
        return make_request(model, backend, **asked)
    backend, asked, lines = presets.fill(preset.name, model, backend, asked, preset.explicit, preset.core)
    for line in lines:
        say(line)
    return make_request(model, backend, **asked, preset=preset.name)


def _folder(output: str | None, first: Candidate) -> Path:
    """Choose the folder of the profiles: DIR, or MODEL-MODE-compare-N in this one, with the first N that is free."""
    if output is None:
        stem = "".join(c if c.isalnum() or c in "-_" else "-" for c in first.request.workload.model)
        number = 1
        while (folder := Path.cwd() / f"{stem}-{first.request.workload.mode}-compare-{number}").exists():
            number += 1
        folder = Path(folder.name)
    else:
        folder = Path(output)
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file: give a folder for the profiles with -o.")
        if not folder.exists() and not folder.parent.is_dir():
            raise InputError(f"Cannot make {folder}: there is no folder {folder.parent}.")
    check_writable(folder if folder.is_dir() else folder.parent)
    return folder


def _files(folder: Path, candidates: list[Candidate], force: bool) -> list[Path]:
    """Choose a file for each candidate: torch.json, keras-jax-jit-off.json. Raises InputError for one that exists."""
    files: list[Path] = []
    for candidate in candidates:
        stem = "".join(c if c.isalnum() or c == "-" else "-" for c in candidate.name)
        path, number = folder / f"{stem}.json", 1
        while path in files:
            number += 1
            path = folder / f"{stem}-{number}.json"
        if folder.is_dir():
            check_output(path, force, inputs=(candidate.request.file,))
        files.append(path)
    return files


# --------------------------------------------------------------------------------------------------------- results


def _next(paths: list[Path], ranking: Ranking, allow: bool) -> None:
    from roofline.content.comparison.comparing import can_repeat

    # Standard input cannot be read again, and nobody copies a hundred names.
    if STDIN in paths or len(paths) > _RUNS:
        return
    files = " ".join(map(quoted, paths))
    where = paths[0].parent if paths[0].exists() else Path()  # not where profiles that ship lie
    if len(paths) == 2 and can_repeat(ranking.pairs[0]):
        allowed = " --allow" if allow else ""
        typer.echo(f"Next: roofline compare {files} --again{allowed}")
    elif len(paths) == 2:
        typer.echo(f"Next: roofline plot {files} --kind waterfall -o {quoted(where / 'waterfall.svg')}")
    else:
        typer.echo(f"Next: roofline plot {files} --kind speedup -o {quoted(where / 'speedup.svg')}")
