"""Variants of disciplines in all their forms, and stored comparisons."""

import json
import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from conftest import Command
from sojourn.scenario.draft import Draft
from sojourn.scenario.variants import labels, split, table, variants


def qdisc_of(result: sj.Result) -> dict[str, Any]:
    """Return the canonical discipline of the compared link."""
    qdisc: dict[str, Any] = result.scenario["links"]["up"]["qdisc"]
    return qdisc


def test_every_form_is_the_same_discipline(small: Path) -> None:
    """Text, table and model agree, in Python, in a file and in a setting."""
    tree = Draft.read(small).tree
    text = "codel(target=15ms, interval='50ms', ecn=false)"
    parameters: Any = {"target": "15ms", "interval": "50ms", "ecn": False}
    forms: list[Any] = [text, {"name": "codel", **parameters}, sj.CoDel(**parameters)]
    runs = [next(iter(sj.compare(small, [form]).values()))[0] for form in forms]
    runs.append(sj.simulate(Draft.read(tree).set([f"up.qdisc={text}"])))
    tree["links"]["up"]["qdisc"] = text[:-1] + ", limit=100kB)"
    runs.append(sj.simulate(tree))
    link = sj.Link(rate="5mbit", delay="10ms", qdisc=tree["links"]["up"]["qdisc"])
    runs.append(sj.simulate(sj.Scenario(**{**tree, "links": {"up": link}})))
    assert all(run.summary == runs[0].summary for run in runs)
    expected = {"name": "codel", **parameters, "limit": "100kB", "variant": "rfc"}
    qdisc = qdisc_of(runs[0])
    assert {key: qdisc[key] for key in expected} == expected


def test_variants_of_one_discipline_are_compared(small: Path) -> None:
    """A model next to a name, and custom labels."""
    runs = sj.compare(small, [sj.CoDel(target="15ms"), "codel"])
    assert list(runs) == ["codel(target=15ms)", "codel"]
    assert qdisc_of(runs["codel(target=15ms)"][0])["target"] == "15ms"
    assert qdisc_of(runs["codel"][0])["target"] == "5ms"
    named = sj.compare(small, {"slow codel": sj.CoDel(target="100ms"), "quick": "codel"})
    assert list(named) == ["slow codel", "quick"]
    assert named["quick"][0].summary == runs["codel"][0].summary
    one = sj.compare(small, "slow=codel(target=100ms),red")
    assert list(one) == ["slow", "red"]
    assert one["slow"][0].summary == named["slow codel"][0].summary


def test_the_buffer_is_kept_unless_it_is_named(small: Path) -> None:
    """In all forms, including other names of limit."""
    qdiscs: list[Any] = ["red", "codel(buffer=50p)", sj.Pie(), {"name": "sfq", "limit": "20p"}]
    runs = sj.compare(small, qdiscs)
    limits = [qdisc_of(results[0])["limit"] for results in runs.values()]
    assert limits == ["100kB", "50p", "100kB", "20p"]
    assert list(runs) == ["red", "codel(buffer=50p)", "pie", "sfq(limit=20p)"]
    axis = {"up.qdisc": ["red", sj.Pie(), {"name": "sfq", "limit": "20p"}]}
    stored = sj.sweep(small, axis)
    assert stored["up.qdisc"].to_list() == ["red", "pie", "sfq"]
    for label, name in (("red", "red"), ("pie", "pie"), ("sfq", "sfq(limit=20p)")):
        row = stored.filter(pl.col("up.qdisc") == label)
        assert row["sojourn_p99_s"][0] == runs[name][0].links["up"].sojourn_p99_s


def test_an_axis_takes_variants(small: Path) -> None:
    """Text forms are their own labels; models are labelled by their differences."""
    rows = sj.sweep(small, {"up.qdisc": ["codel", "codel(target=15ms)"]})
    assert rows["up.qdisc"].to_list() == ["codel", "codel(target=15ms)"]
    models = [sj.CoDel(target="6ms", mtu="1kB"), sj.CoDel(target="15ms", mtu="1kB")]
    again = sj.sweep(small, {"up.qdisc": models})
    assert again["up.qdisc"].to_list() == ["codel(target=6ms)", "codel(target=15ms)"]
    assert again["sojourn_p99_s"][1] == rows["sojourn_p99_s"][1]


@pytest.mark.parametrize(
    ("qdiscs", "expected"),
    [
        ([{"name": "codel"}, {"name": "red"}], ["codel", "red"]),
        ([{"name": "red", "max_p": 0.25, "ecn": True}], ["red(max_p=0.25, ecn=true)"]),
        (
            [{"name": "red", "ecn": True, "max_p": p} for p in (0.1, 0.2)],
            ["red(max_p=0.1)", "red(max_p=0.2)"],
        ),
        (
            [{"name": "wfq", "weights": [3, 1]}, {"name": "wfq"}],
            ["wfq(weights=[3, 1])", "wfq"],
        ),
    ],
)
def test_labels_are_the_shortest_unique_ones(
    qdiscs: list[dict[str, Any]], expected: list[str]
) -> None:
    """Parameters shared by all variants of a name are left out."""
    assert labels(qdiscs) == expected


def test_words_of_tc_are_their_own_label(small: Path) -> None:
    """The table has Linux's defaults as well, which nobody wrote."""
    text = "tc:  cake  bandwidth 1mbit,slow=tc: codel,codel"
    assert [label for label, _ in variants(text)] == ["tc: cake bandwidth 1mbit", "slow", None]
    assert [*sj.compare(small, text)] == ["tc: cake bandwidth 1mbit", "slow", "codel"]
    with pytest.raises(sj.InputError, match='"tc: codel target 5ms" is the same as "tc: codel"'):
        sj.compare(small, "tc: codel,tc: codel target 5ms")


def test_the_heading_says_which_discipline_has_which_buffer(small: Path, sojourn: Command) -> None:
    """If they differ; cake computes its own."""
    out = sojourn("compare", small, "--qdisc", "droptail,codel,sfq(limit=9p),tc: cake")[1]
    buffers = "buffers 100kB (droptail, codel), 9p (sfq(limit=9p)), automatic (tc: cake)"
    assert f"only the discipline of up differs: 5mbit, {buffers}\n" in out
    out = sojourn("compare", small, "--qdisc", "droptail,codel")[1]
    assert "only the discipline of up differs: 5mbit, buffer 100kB\n" in out


TWO_LINKS = {
    "duration": "1s",
    "links": {"up": {"rate": "1mbit"}, "core": {"rate": "2mbit"}},
    "flows": [{"name": "bulk", "path": ["up", "core"], "rtt": "20ms"}],
}


def test_a_comparison_warns_if_it_chose_one_of_several_links() -> None:
    """A link that is text, or called bottleneck, or has only ACKs, is no choice."""
    with pytest.warns(sj.ScenarioWarning) as warned:
        sj.compare(TWO_LINKS, "droptail,codel")
    (one,) = warned
    expected = "links.up.qdisc: only this discipline is compared, and data also cross core; choose"
    assert str(one.message).startswith(expected)
    sj.compare(TWO_LINKS, "droptail,codel", link="up")
    renamed = {**TWO_LINKS, "links": {"bottleneck": {"rate": "1mbit"}, "core": {"rate": "2mbit"}}}
    renamed["flows"] = [{"name": "bulk", "path": ["bottleneck", "core"], "rtt": "20ms"}]
    sj.compare(renamed, "droptail,codel")
    back = [{"name": "bulk", "path": ["up"], "return_path": ["core"], "rtt": "20ms"}]
    sj.compare({**TWO_LINKS, "flows": back}, "droptail,codel")


def test_lists_are_split_outside_of_brackets() -> None:
    """Commas in brackets and quotes do not split a list."""
    assert split("a, b(c=1, d=[2, 3]),e") == ["a", "b(c=1, d=[2, 3])", "e"]
    assert split("a(b=','),'c,d'") == ["a(b=',')", "'c,d'"]
    assert split("") == [""]


def test_text_becomes_a_table() -> None:
    """With or without a label; an = in parentheses belongs to a parameter."""
    assert table("codel") == {"name": "codel"}
    assert table("codel(target=15ms)") == {"name": "codel", "target": "15ms"}
    assert variants("a=codel(target=1ms),red(ecn=true)") == [
        ("a", {"name": "codel", "target": "1ms"}),
        (None, {"name": "red", "ecn": "true"}),
    ]


BAD: dict[str, tuple[Any, str]] = {
    "no form": (["codel(target=15ms"], '"codel(target=15ms" does not end with ")"'),
    "an unknown parameter": (["codel(targte=1ms)"], "links.up.qdisc.targte: unknown parameter"),
    "a bad value": ([{"name": "codel", "target": "15"}], 'links.up.qdisc.target: "15" has no unit'),
    "a name among the parameters": (["codel(name=red)"], "name: "),
    "nothing but a bracket": (["()"], "has no name before"),
    "endless text": (["codel(" + "x" * 10_000 + ")"], "(10007 characters) has"),
    "one twice": (["red", "red"], '"red" is given twice'),
    "one in two words": (["codel", "codel(target=5ms)"], 'is the same as "codel"'),
    "a label twice": (["a=red", "a=pie"], '"a" is given twice'),
    "an empty label": ({" ": "red"}, "is not a label"),
    "a label with a line break": ({"a\nb": "red"}, "is not a label"),
    "nothing": ([], "there is no discipline"),
    "a number": ([7], "7 is not a name"),
    "a table without a name": ([{"target": "5ms"}], "name: is missing"),
    "another thing": (7, "7 is not a list of disciplines"),
    "too many seeds": ("red", "--seeds: 10001 is out of range"),
}


def test_labels_can_be_long_and_strange(small: Path, tmp_path: Path) -> None:
    """Folder names are valid on every file system, and unique per label."""
    names = ["a b", "a/b", "a_b", "../x", "é"]
    labelled: dict[str, Any] = {name: f"codel(target={n + 1}ms)" for n, name in enumerate(names)}
    sj.compare(small, labelled, out=tmp_path / "out")
    folders = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert folders == ["a_b-1", "a_b_1-1", "a_b_2-1", "comparison.json", "variant-1", "x-1"]
    assert list(sj.load_comparison(tmp_path / "out")) == names
    red = sj.Red(min_th="5kB", max_th="15kB", max_p=0.2, w_q=0.003, packet="600B", limit="50kB",
                 gentle="buffer", wait="yes", hard_drop=True, byte_mode="mean")  # fmt: skip
    runs = sj.compare(small, red, out=tmp_path / "red")
    assert len(next(iter(runs))) > 100
    assert list(sj.load_comparison(tmp_path / "red")) == list(runs)


@pytest.mark.parametrize("case", BAD)
def test_bad_variants_are_refused(case: str, small: Path) -> None:
    """The message has the path of the parameter, or the option."""
    value, part = BAD[case]
    seeds = 10_001 if case == "too many seeds" else 1
    with pytest.raises(sj.InputError) as refused:
        sj.compare(small, value, seeds=seeds)
    assert part in str(refused.value)


def test_the_command_compares_variants(small: Path, sojourn: Command) -> None:
    """A comma inside parentheses does not split, and the option may be repeated."""
    options = ["--qdisc", "codel(target=15ms, interval=50ms),red", "--qdisc", "slow=pie(target=1s)"]
    code, out, err = sojourn("compare", small, *options, "--json")
    assert (code, err) == (0, "")
    summary = json.loads(out)["runs"]
    assert list(summary) == ["codel(target=15ms, interval=50ms)", "red", "slow"]
    assert summary["slow"]["scenario"]["links"]["up"]["qdisc"]["target"] == "1s"


def test_run_and_replay_take_a_discipline(small: Path, tmp_path: Path, sojourn: Command) -> None:
    """`run --qdisc` sets the compared link's; `--set` changes replay's discipline."""
    summary = json.loads(sojourn("run", small, "--qdisc", "codel(target=15ms)", "--json")[1])
    by_set = sojourn("run", small, "--set", "up.qdisc=codel(target=15ms)", "--json")[1]
    assert summary == json.loads(by_set)
    assert summary["scenario"]["links"]["up"]["qdisc"]["limit"] == "100kB"
    more = ["--set", "up.qdisc=red(max_p=5%)", "--set", "up.qdisc.min_th=9p", "--json"]
    qdisc = json.loads(sojourn("run", small, *more)[1])["scenario"]["links"]["up"]["qdisc"]
    assert (qdisc["max_p"], qdisc["min_th"], qdisc["limit"]) == (0.05, "9p", "100kB")
    assert "--link: has no effect" in sojourn("run", small, "--link", "up")[2]
    arrivals = tmp_path / "in.csv"
    arrivals.write_text("i,t_us,flow,size_B\n0,0,0,1500\n")
    out = ["--rate", "1mbit", "--out", tmp_path / "out.csv", "--json", "--set", "interval=1s"]
    summary = json.loads(sojourn("replay", arrivals, "--qdisc", "codel(target=15ms)", *out)[1])
    assert summary["qdisc"] == {"name": "codel", "target": "15ms", "interval": "1s"}


def test_link_takes_a_discipline(sojourn: Command) -> None:
    """With its parameters, additional ones, and changes for one direction."""
    link = ["link", "--rate", "1mbit", "--qdisc", "codel(target=15ms)"]
    for options in (
        ["--set", "interval=50ms"],
        ["--up", "qdisc.interval=50ms"],
        ["--down", "qdisc=red(max_p=5%)"],
    ):
        assert (
            "no-such-command: command not found"
            in sojourn(*link, *options, "--", "no-such-command")[2]
        )
    assert "--set targte: unknown parameter" in sojourn(*link, "--set", "targte=1ms")[2]


# ---- what a comparison is afterwards -----------------------------------------------------------


@pytest.fixture
def folder(small: Path, sojourn: Command) -> Path:
    """Return a folder that `compare --out` wrote."""
    out = small.with_name("runs")
    options = ["--qdisc", "codel(target=15ms),codel,my red=red", "--seeds", "3", "--out", out]
    assert sojourn("compare", small, *options)[::2] == (0, "")
    return out


def test_results_reads_a_comparison(small: Path, folder: Path, sojourn: Command) -> None:
    """A row per run, with the same numbers as a sweep over the same disciplines."""
    rows = sj.results(folder)
    assert rows.select("qdisc", "seed").rows() == [
        (label, seed) for label in ("codel(target=15ms)", "codel", "my red") for seed in (1, 2, 3)
    ]
    values = {"codel(target=15ms)": "codel(target=15ms)", "codel": "codel", "my red": "red"}
    axes = {"qdisc": {"set": "up.qdisc", "values": values}}
    sweep = sj.sweep(small, axes, seeds=3)
    shared = [name for name in sweep.columns if name not in ("engine", "key", "axes", "measured")]
    assert rows.select(shared).equals(sweep.select(shared))

    code, out, err = sojourn("results", folder, "--pair", "qdisc=codel", "--json")
    assert (code, err) == (0, "")
    pairs = json.loads(out)["table"]
    assert [(row["qdisc"], row["pairs"]) for row in pairs] == [
        ("codel(target=15ms)", 3),
        ("my red", 3),
    ]
    out = sojourn("results", folder, "--where", "qdisc=my red", "--metric", "call.delay_p99")[1]
    assert "my red" in out
    assert "codel" not in out


def test_results_reads_a_run(small: Path, tmp_path: Path, sojourn: Command) -> None:
    """A run gives one row without axes."""
    sojourn("run", small, "--out", tmp_path / "run")
    row = sj.results(tmp_path / "run").row(0, named=True)
    result = sj.simulate(small)
    assert row["sojourn_p99_s"] == result.links["up"].sojourn_p99_s
    assert (row["seed"], row["axes"]) == (1, "[]")
    assert "utilisation" in sojourn("results", tmp_path / "run")[1]
    code, _, err = sojourn("results", tmp_path)
    assert code == 2
    assert err.endswith("there are no results; there are some in run\n")


def test_plot_draws_a_stored_comparison(
    small: Path, folder: Path, tmp_path: Path, sojourn: Command
) -> None:
    """With --y as for a sweep; without it, the figure of `--plot`."""
    figure = tmp_path / "figure.png"
    for options in (["--y", "sojourn_p99", "--kind", "box", "--by", "qdisc"], []):
        assert sojourn("plot", folder, *options, "--out", figure) == (0, "", "")
        assert figure.stat().st_size > 5_000
        figure.unlink()
    sojourn("run", small, "--out", tmp_path / "run")
    assert sojourn("plot", tmp_path / "run", "--out", figure) == (0, "", "")
    assert figure.stat().st_size > 20_000
    sj.sweep(small, {"up.rate": ["5mbit"]}, out=tmp_path / "sweep")
    code, _, err = sojourn("plot", tmp_path / "sweep", "--out", figure)
    assert (code, "--y: a figure of a sweep requires it" in err) == (2, True)
    assert "there are no results" in sojourn("plot", tmp_path, "--out", figure)[2]


def test_unfinished_runs_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An interrupted comparison gives its finished runs."""
    for path in (folder / "my_red-2").iterdir():
        path.unlink()
    runs = sj.load_comparison(folder)
    assert [len(results) for results in runs.values()] == [3, 3, 2]
    assert capsys.readouterr().err.endswith("1 run of the comparison not finished\n")
    with pytest.raises(sj.InputError, match="there is no comparison"):
        sj.load_comparison(folder / "codel-1")
    (folder / "comparison.json").write_text(
        '{"sojourn": "", "scenario": {}, "link": 3, "variants": {}}'
    )
    with pytest.raises(sj.InputError, match=r"comparison\.json: link: expected str"):
        sj.load_comparison(folder)


def test_a_comparison_is_a_mapping_with_a_frame(small: Path) -> None:
    """It prints in one line, can be pickled, and has the rows that `results` reads."""
    runs = sj.compare(small, ["red", "codel"], seeds=2)
    assert isinstance(runs, dict)
    assert repr(runs) == "Comparison(small, up: red, codel; 2 seeds)"
    assert repr(sj.compare(small, ["red"])).endswith("red; 1 seed)")
    assert runs.frame().select("qdisc", "seed").rows() == [
        ("red", 1), ("red", 2), ("codel", 1), ("codel", 2)
    ]  # fmt: skip
    back = pickle.loads(pickle.dumps(runs))
    assert (back.link, list(back)) == ("up", ["red", "codel"])
    assert back["red"][0].summary == runs["red"][0].summary


def test_printing_a_comparison_shows_the_table_of_the_command(
    sojourn: Command, small: Path
) -> None:
    """The same lines, and `repr` stays one line."""
    runs = sj.compare(small, "droptail,codel", seeds=2)
    code, printed, _ = sojourn("compare", small, "--qdisc", "droptail,codel", "--seeds", "2")
    assert code == 0
    assert [line.rstrip() for line in str(runs).splitlines()] == [
        line.rstrip() for line in printed.splitlines()
    ]
    assert repr(runs).startswith("Comparison(small, up: droptail, codel; 2 seeds)")
    assert str(type(runs)({}, "up")) == "Comparison(up: ; 0 seeds)"
