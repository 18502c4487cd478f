"""The command `sojourn explain`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn._sojourn import InputError
from sojourn.cli import suggest
from sojourn.cli.options import Json, Trust

if TYPE_CHECKING:
    from sojourn.result.result import Result


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
    as_json: Json = False,
    trust: Trust = False,
) -> None:
    """Explain a result in sentences, with the evidence.

    Each sentence names the metrics that it rests on. The sentences come from rules on measured
    values: bottleneck, standing queue or bursts, who caused it, fairness, timeouts, marks,
    parameters, warm-up.
    """
    from sojourn.explanation.live_link import report_in
    from sojourn.explanation.rules import explain as rules

    report = report_in(source) if source.is_file() else None
    if report is not None:
        if qdisc is not None:
            raise InputError("--qdisc: only for a scenario, not for a report of sojourn link")
        try:
            results = {"live link": rules(report)}
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
    else:
        results = {label: rules(result) for label, result in _results(source, qdisc, trust).items()}
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
        for one in findings:
            for line in wrap(one.text, out.width - 2):
                out.print(Text(f"  {line}"))
            for line in wrap(_evidence(one.evidence), out.width - 6, break_on_hyphens=False):
                out.print(Text(f"      {line}", style="dim"))
        if not any(one.kind == "unusual" for one in findings):
            out.print("  Nothing unusual.")


def _evidence(evidence: Any) -> str:
    from sojourn._util.units import short

    return ", ".join(
        f"{path} = {short(value) if isinstance(value, float) else value}"
        for path, value in evidence.items()
        if not isinstance(value, str) or len(value) < 30
    )


def _results(source: Path, qdisc: str | None, trust: bool) -> "dict[str, Result]":
    """Return results by label: of the runs in a folder, or of a run of the scenario."""
    if not source.is_dir():
        from sojourn.engines.simulate import simulate
        from sojourn.scenario.draft import Draft

        draft = Draft.read(source, trust=trust)
        if qdisc is not None:
            draft = draft.with_qdisc(qdisc)
        parsed = draft.parse()
        try:
            result = simulate(parsed, progress=True)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        return {f"{result.scenario['name']}, seed {result.scenario['seed']}": result}
    from sojourn.result import folders
    from sojourn.result.io import load_result
    from sojourn.sweeps.compare import load_comparison

    if qdisc is not None:
        raise InputError("--qdisc: only for a scenario, not for a folder of results")
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
