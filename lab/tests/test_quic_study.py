"""The study of QUIC stacks: its page from runs, and the program of the adapters."""

from pathlib import Path

import pytest

from sojourn_lab.studies import quic, quic_page
from sojourn_lab.studies.quic import Case, Run

USUAL = Run([4.7e6, 4.7e6], p50_s=0.004, p99_s=0.02, dropped=0.001, marked=0.0)


def runs(case: Case) -> list[Run]:
    """Return two runs with the misbehaviour of the page."""
    stack, control, flows, qdisc = case
    goodput, delay, dropped, marked = [9.4e6 / flows] * flows, 0.004, 0.001, 0.0
    match stack, control:
        case "quinn", "bbr":
            delay, marks = 0.04, qdisc in ("fq_codel", "cake")
            dropped, marked = (0.0, 0.8) if marks else (0.3, 0.0)
            if flows == 8:
                goodput = [9e6, *[0.05e6] * 7]
        case "s2n-quic", "bbr":
            delay = 0.01 if qdisc == quic.WITHOUT_ECN else 0.03
        case "s2n-quic", "cubic":
            goodput, delay = [8.6e6 / flows] * flows, 0.012
    return [Run(goodput, delay + i * 1e-4, 2 * delay, dropped, marked) for i in range(2)]


@pytest.fixture(scope="module")
def results() -> quic_page.Results:
    """Return two runs of each case."""
    return {case: runs(case) for case in quic.cases()}


def test_properties_of_a_run() -> None:
    """Total, Jain's index, and the sum of drops and marks."""
    run = Run([3e6, 1e6], 0.0, 0.0, dropped=0.1, marked=0.2)
    assert run.total_mbps == 4
    assert run.jain == pytest.approx(0.8)
    assert run.signals == pytest.approx(0.3)
    assert Run([0.0], 0, 0, 0, 0).jain == 0


def test_faults_are_found_and_usual_runs_have_none(results: quic_page.Results) -> None:
    """Words of the table of misbehaviour."""
    assert not quic_page.faults(results, ("quinn", "cubic", 2, "codel"))
    assert not quic_page.faults(results, ("sojourn", "bbr", 8, "cake"))
    words = quic_page.faults(results, ("quinn", "bbr", 8, "codel"))
    assert words == ["9.9 times the delay", "30 % dropped", "Jain's index 0.13"]
    words = quic_page.faults(results, ("s2n-quic", "cubic", 1, "fq_codel"))
    assert words == ["3.0 times the delay", "91 % of the goodput"]
    # Tail drop has no target for the delay.
    assert quic_page.faults(results, ("s2n-quic", "bbr", 1, quic.QDISCS[0])) == []


def test_the_page_has_every_case_and_no_marker_left(
    results: quic_page.Results, tmp_path: Path
) -> None:
    """Text and figure."""
    text = quic_page.page(results, 2)
    assert "<!--" not in text
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) == len(quic.QDISCS) * len(quic.SENDERS) * len(quic.FLOWS)
    assert "`codel` and `pie` drop 30 % of its packets" in text
    quic_page.draw(results, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text().count("<svg") == 1


def test_a_statement_that_does_not_hold_stops_the_page(results: quic_page.Results) -> None:
    """BBR of quinn without losses."""
    others = dict(results)
    for case in others:
        if case[:2] == ("quinn", "bbr"):
            others[case] = [USUAL, USUAL]
    with pytest.raises(SystemExit, match=r"does not hold: quinn's BBR loses much, .* marked"):
        quic_page.conclusions(others)


def test_runs_are_kept_and_not_repeated(tmp_path: Path) -> None:
    """The program gets a line per run that is missing; a failure of it stops the study."""
    program = tmp_path / "program"
    line = '{"goodput_bps": [9e6], "p50_s": 0.1, "p99_s": 0.2, "dropped": 0, "marked": 0}'
    loop = f"while read -r line; do echo \"$line\" >>{tmp_path}/asked; echo '{line}'; done"
    program.write_text(f"#!/bin/sh\n{loop}\n")
    program.chmod(0o755)
    kept = tmp_path / "runs.jsonl"
    case = ("quinn", "cubic", 1, "droptail(limit=312500B)")
    first = quic.measured([case], 1, program, kept)
    both = quic.measured([case], 2, program, kept)
    assert first[case] == both[case][:1]
    assert len(both[case]) == 2
    assert (tmp_path / "asked").read_text().splitlines() == [
        f"quinn cubic 1 {seed} 5 20 droptail(limit=312500B)" for seed in (1, 2)
    ]
    program.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(SystemExit, match="program failed"):
        quic.measured([case], 3, program, kept)


def test_sojourns_cubic_keeps_the_queue_of_codel_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short run of the library's own sender."""
    monkeypatch.setattr(quic, "MEASURED_S", 5)
    run = quic.own((quic.OURS, "cubic", 1, "codel"), 1)
    assert run.total_mbps > 8
    assert run.p50_s < 0.01
    assert run.marked == 0
