"""Random sequences of tc commands have the same answers and end in the same state as in Linux."""

from pathlib import Path

from sojourn_lab.validation.linux import sequences
from support import uml

COUNT = 60
"""Sequences of a test run; `make validate-tc` compares 2,000."""

SEED = 20_261_128

uml.require()


def test_sequences_end_as_in_linux(tmp_path: Path) -> None:
    """Answers to each command, and what `tc qdisc show` and `tc class show` print at the end."""
    bad = sequences.run(COUNT, SEED, tmp_path)
    assert not bad, f"seed {SEED}: {bad[0]}"


def test_a_wrong_answer_is_noticed(tmp_path: Path) -> None:
    """The comparison can fail: here the kernel's answers belong to other sequences."""
    first = ["qdisc add dev dum0 root handle 1: pie", "qdisc add dev dum0 parent 1:1 codel"]
    second = ["qdisc add dev dum0 root handle 1: prio", "qdisc add dev dum0 parent 1:1 codel"]
    right, other = sequences.ask([first, second], tmp_path)
    assert (right.refused, other.refused) == ([False, True], [False, False])
    assert sequences.differences(first, right) == sequences.differences(second, other) == []
    assert "refused by the kernel" in sequences.differences(second, right)[0]
    wrong = sequences.Answer([False], other.json, other.text)
    assert "qdiscs" in sequences.differences(first[:1], wrong)[0]
