"""The command `sojourn explain`."""

import json
from collections import Counter
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
    from collections.abc import Mapping, Sequence

    from sojourn.explanation.finding import Finding
    from sojourn.result.result import Result
    from sojourn.scenario.draft import Draft

AGAINST = " against "
"""Text between the labels of two runs that are compared."""


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
            metavar="A,B,...",
            help="disciplines of the bottleneck of a scenario; of several, each is compared with "
            "the first",
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
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="explain the difference of this one, like call.delay_p99"
        ),
    ] = None,
    trial: Annotated[
        bool,
        typer.Option("--try", help="run the changes that sentences propose: what each brings"),
    ] = False,
    as_json: Json = False,
    trust: Trust = False,
) -> None:
    """Explain a result in sentences, with the evidence.

    The first sentence is the verdict: standing queues, and what else is unusual. Each further
    sentence names the metrics that it rests on. The sentences come from rules on measured values:
    bottleneck, standing queue or bursts, who caused it, delayed ACKs, incast, fairness, timeouts,
    marks, parameters, warm-up. For several disciplines, the differences and their reasons follow.
    """
    from sojourn.explanation.live_link import report_in
    from sojourn.explanation.rules import explain as rules
    from sojourn.scenario.draft import Draft

    options = {"rate": rate, "up": up, "down": down, "rtt": rtt, "buffer": buffer, "flows": flows}
    report = report_in(source) if source.is_file() else None
    kind = "a report of sojourn link" if report is not None else "a folder of results"
    if report is not None or source.is_dir():
        arguments = {**options, "qdisc": qdisc, "set": settings, "try": trial or None}
        for name, value in arguments.items():
            if value is not None:
                raise InputError(f"--{name}: only for a scenario, not for {kind}")
    if report is not None:
        if metric is not None:
            raise InputError(f"--metric: requires two disciplines, not {kind}")
        try:
            results = {"live link": rules(report)}
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
    elif source.is_dir():
        results = _explained(_stored(source), metric)
    else:
        draft = Draft.read(source, options, trust=trust).set(settings or ())
        drafts = _drafts(draft, qdisc)
        runs = {label: _run(source, one) for label, one in drafts.items()}
        results = _explained(runs, metric)
        if trial:
            _add_trials(source, drafts, runs, results)
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
    _print(results)


def _print(results: "Mapping[str, Sequence[Finding]]") -> None:
    from textwrap import wrap

    from rich.text import Text

    from sojourn.display.console import console
    from sojourn.explanation.finding import ALIKE, verdict

    out = console()
    for n, (label, findings) in enumerate(results.items()):
        if n:
            out.print()
        out.print(Text(label, style="bold"))
        if AGAINST not in label:
            for line in wrap(verdict(findings), out.width):
                out.print(Text(line))
        of_rule = Counter(one.rule for one in findings)
        printed: Counter[str] = Counter()
        for one in findings:
            printed[one.rule] += 1
            if printed[one.rule] > ALIKE:
                continue
            for line in wrap(one.text, out.width - 2):
                out.print(Text(f"  {line}"))
            for line in wrap(_evidence(one.evidence), out.width - 6, break_on_hyphens=False):
                out.print(Text(f"      {line}", style="dim"))
            more = of_rule[one.rule] - ALIKE
            if printed[one.rule] == ALIKE and more > 0:
                out.print(Text(f"  {one.rule}: {more} more (--json has all)"))


def _evidence(evidence: Any) -> str:
    from sojourn._util.units import short

    return ", ".join(
        f"{path} = {short(value) if isinstance(value, float) else value}"
        for path, value in evidence.items()
        if not isinstance(value, str) or len(value) < 30
    )


def _drafts(draft: "Draft", qdisc: str | None) -> "dict[str, Draft]":
    """Return the scenario with each discipline, by label."""
    from sojourn.scenario.variants import split

    if qdisc is None or len(names := split(qdisc)) == 1:
        draft = draft if qdisc is None else draft.with_qdisc(qdisc)
        tree = json.loads(draft.parse().canonical())
        return {f"{tree['name']}, seed {tree['seed']}": draft}
    if len(set(names)) < len(names):
        raise InputError(f"--qdisc {qdisc}: a discipline is named twice")
    return {name: draft.with_qdisc(name) for name in names}


def _explained(runs: "Mapping[str, Result]", metric: str | None) -> "dict[str, list[Finding]]":
    """Return the findings of each run, then of each difference from the first one."""
    from sojourn.explanation.rules import explain as rules
    from sojourn.explanation.why import explain_difference

    if metric is not None and len(runs) < 2:
        raise InputError("--metric: requires two disciplines: --qdisc A,B, or a comparison")
    results = {} if metric is not None else {label: rules(one) for label, one in runs.items()}
    if len(runs) > 1:
        first = next(iter(runs))
        for label, findings in explain_difference(runs, metric).items():
            results[f"{label}{AGAINST}{first}"] = findings
    return results


def _add_trials(
    source: Path,
    drafts: "Mapping[str, Draft]",
    runs: "Mapping[str, Result]",
    results: "dict[str, list[Finding]]",
) -> None:
    """Append to the findings of each run what their proposed changes bring."""
    from sojourn.explanation.trial import tried

    for label, draft in drafts.items():
        findings = results.get(label, [])

        def rerun(change: "Sequence[str]", draft: "Draft" = draft) -> "Result":
            return _run(source, draft.set(change))

        findings += tried(runs[label], findings, rerun)


def _run(source: Path, draft: "Draft") -> "Result":
    """Run a scenario."""
    from sojourn.engines.simulate import simulate

    parsed = draft.parse()
    try:
        return simulate(parsed, progress=True)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


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
