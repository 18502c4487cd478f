"""The command `sojourn explain`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn._sojourn import InputError
from sojourn.cli import suggest
from sojourn.cli.options import (
    Buffer,
    Down,
    Flows,
    Json,
    Rate,
    Rtt,
    Set,
    Trust,
    Up,
)

if TYPE_CHECKING:
    from sojourn.result.result import Result
    from sojourn.scenario.draft import Draft


def explain(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO|RESULT",
            help="scenario (a file or a name), which is run; folder of sojourn run or compare; "
            "or output of sojourn link --json",
            show_default=False,
            autocompletion=suggest.scenarios,
        ),
    ],
    qdisc: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="discipline of the bottleneck of a scenario",
            autocompletion=suggest.disciplines,
        ),
    ] = None,
    rate: Rate = None,
    up: Up = None,
    down: Down = None,
    rtt: Rtt = None,
    buffer: Buffer = None,
    flows: Flows = None,
    settings: Set = None,
    as_json: Json = False,
    trust: Trust = False,
) -> None:
    """Explain a result in sentences, with the evidence.

    The first sentence is the verdict: standing queues, and what else is unusual. Each further
    sentence names the metrics that it rests on. The sentences come from rules on measured values:
    bottleneck, standing queue or bursts, who caused it, delayed ACKs, fairness, timeouts, marks,
    parameters, warm-up.
    """
    from sojourn.explanation.finding import verdict
    from sojourn.explanation.live_link import report_in
    from sojourn.explanation.rules import explain as rules
    from sojourn.scenario.draft import Draft

    options = {"rate": rate, "up": up, "down": down, "rtt": rtt, "buffer": buffer, "flows": flows}
    report = report_in(source) if source.is_file() else None
    kind = "a report of sojourn link" if report is not None else "a folder of results"
    if report is not None or source.is_dir():
        for name, value in {**options, "qdisc": qdisc, "set": settings}.items():
            if value is not None:
                raise InputError(f"--{name}: only for a scenario, not for {kind}")
    if report is not None:
        try:
            results = {"live link": rules(report)}
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
    else:
        if source.is_dir():
            runs = _stored(source)
        else:
            draft = Draft.read(source, options, trust=trust)
            draft = draft if qdisc is None else draft.with_qdisc(qdisc)
            runs = _run(source, draft.set(settings or ()))
        results = {label: rules(result) for label, result in runs.items()}
    if as_json:
        summary: dict[str, Any] = {
            label: [
                {"rule": f.rule, "kind": f.kind, "text": f.text, "evidence": dict(f.evidence)}
                for f in findings
            ]
            for label, findings in results.items()
        }
        print(json.dumps(summary, indent=2, allow_nan=False))
        return
    from textwrap import wrap

    from rich.text import Text

    from sojourn.display.console import console

    out = console()
    for n, (label, findings) in enumerate(results.items()):
        if n:
            out.print()
        out.print(Text(label, style="bold"))
        for line in wrap(verdict(findings), out.width):
            out.print(Text(line))
        for one in findings:
            for line in wrap(one.text, out.width - 2):
                out.print(Text(f"  {line}"))
            for line in wrap(_evidence(one.evidence), out.width - 6, break_on_hyphens=False):
                out.print(Text(f"      {line}", style="dim"))


def _evidence(evidence: Any) -> str:
    from sojourn._util.units import short

    return ", ".join(
        f"{path} = {short(value) if isinstance(value, float) else value}"
        for path, value in evidence.items()
        if not isinstance(value, str) or len(value) < 30
    )


def _run(source: Path, draft: "Draft") -> "dict[str, Result]":
    """Run a scenario, and return the result by its label."""
    from sojourn.engines.simulate import simulate

    parsed = draft.parse()
    try:
        result = simulate(parsed, progress=True)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return {f"{result.scenario['name']}, seed {result.scenario['seed']}": result}


def _stored(source: Path) -> "dict[str, Result]":
    """Return the results in a folder by label: of a run, or of each discipline of a comparison."""
    from sojourn.result import folders
    from sojourn.result.io import load_result
    from sojourn.sweeps.compare import load_comparison

    match folders.kind_of(source):
        case "run":
            result = load_result(source)
            return {f"{result.scenario['name']}, seed {result.scenario['seed']}": result}
        case "comparison":
            runs = load_comparison(source, series=False)
            return {
                f"{label}, seed {results[0].scenario['seed']}": results[0]
                for label, results in runs.items()
            }
    raise InputError(f"{source}: holds no run or comparison; sojourn run FILE --out DIR writes one")
