"""No command prints characters that move the cursor or reorder text; devices have real names."""

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import SMALL, Command
from sojourn import tc
from sojourn.display.console import console
from support.link_reports import report
from support.refusals import one_line

EVIL = "A\x1b]0;owned\x07\x1b[31mred\u202egnp.exe\u2066\x9b2J\r\x00\x7f\u200b"
"""Escape sequences, and characters that change the direction of text or that are not seen."""

SHORT: dict[str, Any] = {
    "duration": "300ms",
    "links": {"up": {"rate": "1mbit"}},
    "flows": [{"name": "f", "path": ["up"]}],
}


def clean(text: str) -> bool:
    """Return True if all characters of an output are printable."""
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("char", ["\x1b", "\n", "\x7f", "\x9b", "\u202e", "\u2066", "\u200b"])
def test_a_title_is_printable(char: str, tmp_path: Path, sojourn: Command) -> None:
    """Every command that reads a scenario refuses others."""
    path = tmp_path / "evil.json"
    path.write_text(json.dumps({**SHORT, "name": f"a{char}b"}))
    message = f"{path}: name: has the control character U+{ord(char):04X}, allowed: printable text"
    one_line(sojourn("run", path), message)
    one_line(sojourn("explain", path), message)
    one_line(sojourn("compare", path, "--qdisc", "red"), message)


def test_a_title_may_have_any_letters(tmp_path: Path, sojourn: Command) -> None:
    """Also marks of rich, HTML and TeX."""
    path = tmp_path / "case.json"
    name = "Büro 日本 [/bold] <b>&amp; $x^{ \\frac"
    path.write_text(json.dumps({**SHORT, "name": name}))
    code, out, err = sojourn("run", path, "--plot", tmp_path / "x.png")
    assert (code, err) == (0, "")
    assert out.startswith(name)


@pytest.mark.parametrize("kind", ["link", "flow"])
def test_names_of_links_and_flows_are_plain(kind: str, tmp_path: Path, sojourn: Command) -> None:
    """Letters, digits, `_` and `-`."""
    tree = json.loads(json.dumps(SHORT))
    if kind == "link":
        tree["links"] = {EVIL: tree["links"]["up"]}
    else:
        tree["flows"][0]["name"] = EVIL
    path = tmp_path / "evil.json"
    path.write_text(json.dumps(tree))
    code, out, err = sojourn("run", path)
    assert (code, out, clean(err)) == (2, "", True)


def edit(path: Path, change: Any) -> None:
    """Change a JSON file in place."""
    tree = json.loads(path.read_text())
    change(tree)
    path.write_text(json.dumps(tree, indent=2))


def test_output_about_stored_files_is_printable(tmp_path: Path, sojourn: Command) -> None:
    """Labels, warnings, versions and names of disciplines in results of others."""
    run, comparison, runs = (tmp_path / name for name in ("run", "comparison", "runs"))
    small = tmp_path / "small.toml"
    small.write_text(SMALL.replace('"3s"', '"1500ms"'))
    result = sj.simulate(small)
    result.save(run)
    sj.compare(small, ["red", "codel"], out=comparison)
    sj.sweep(small, {"up.qdisc": {"set": "up.qdisc", "values": {EVIL: "red", "b": "codel"}}},
             out=runs)  # fmt: skip

    def warn(tree: dict[str, Any]) -> None:
        tree["live"] = {"warnings": [f"late{EVIL}"]}
        tree["links"]["up"]["qdisc"] = EVIL

    def label(tree: dict[str, Any]) -> None:
        tree["variants"][EVIL] = tree["variants"].pop("red")

    edit(run / "summary.json", warn)
    edit(comparison / "comparison.json", label)
    link, tree = tmp_path / "link.json", json.loads(json.dumps(report()))
    tree["warnings"], tree["command"] = [f"late{EVIL}"], [EVIL]
    link.write_text(json.dumps(tree, indent=2))
    figure = ("--out", tmp_path / "x.png")
    for words in (
        ("explain", run), ("results", run), ("results", run, "--rows"), ("explain", link),
        ("explain", comparison), ("results", comparison), ("plot", comparison, *figure),
        ("results", runs), ("results", runs, "--rows"), ("explain", link, "--json"),
        ("results", runs, "--json"), ("results", runs, "--where", f"up.qdisc={EVIL}x"),
        ("plot", runs, "--y", "utilisation", "--by", "up.qdisc", *figure),
        ("plot", runs, "--y", "utilisation", "--x", "up.qdisc", *figure),
    ):  # fmt: skip
        code, out, err = sojourn(*words)
        assert code in (0, 2), (words, err)
        assert clean(out + err), words
        assert "Warning" not in err, words
    for page in (sj.load_comparison(comparison), sj.load_result(run)):
        assert clean(page._repr_html_() or "")


def test_comments_of_tc_are_printable(tmp_path: Path, sojourn: Command) -> None:
    """Words of tc that are lost, and names of devices, in JSON and text."""
    options = {"rate": 125000, "burst": 1600, "lat": 1000, EVIL: 1}
    shown = [{"kind": "tbf", "handle": "1:", "dev": EVIL, "root": True, "options": options}]
    path = tmp_path / "shown.json"
    path.write_text(json.dumps(shown))
    code, out, err = sojourn("tc", "import", path)
    assert clean(out + err), (code, out, err)
    code, out, err = sojourn("tc", "import", f"tc qdisc add dev e{EVIL[:1]} root codel {EVIL}")
    assert clean(out + err)


def test_the_console_keeps_colours_and_letters(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the characters of texts are replaced."""
    out = console(force_terminal=True, color_system="standard", width=80)
    out.print("[bold]Büro[/] \u202e日本\x1b[2J", end="")
    assert capsys.readouterr().out == "\x1b[1mBüro\x1b[0m  日本 [2J"


GOOD_DEVICES = ("eth0", "wan0", "eth0.100", "br-lan", "wlan0_1", "a", "x" * 15, "if+x", "v@me")

BAD_DEVICES = (
    "", ".", "..", "x" * 16, "a b", "a/b", "a\tb", "eth0\n", "e;reboot", "e|x", "`x`", "$x", "e&",
    "(e)", "<e", "e>", "'e'", '"e"', "e\\", "e*", "e?", "[e]", "{e}", "~", "#e", "!e", "-e", "e:1",
    "e\x1b", "ö", "e\u202e",
)  # fmt: skip


@pytest.mark.parametrize("name", BAD_DEVICES)
def test_names_that_are_no_devices_are_refused(name: str, sojourn: Command) -> None:
    """They are written into commands for a shell, of `tc export` and of `recommend`."""
    line = ("--down", "10mbit", "--up", "1mbit", "--rtt", "20ms")
    for words in (("tc", "export", "codel", "--dev", name), ("recommend", *line, "--dev", name)):
        one_line(sojourn(*words), "dev ", "write the name of a device, like eth0")
    for source in ("codel", sj.Link(rate="1mbit")):
        with pytest.raises(sj.InputError, match="write the name of a device"):
            tc.export(source, dev=name)
    for devices in ([name], [f"up={name}"]):
        with pytest.raises(sj.InputError, match="write the name of a device"):
            tc.export(SHORT, dev=devices)
    with pytest.raises(sj.InputError, match="write the name of a device"):
        tc.export("codel", dev=f"a{name};b=eth0")


@pytest.mark.parametrize("name", GOOD_DEVICES)
def test_names_of_devices_are_written(name: str, sojourn: Command) -> None:
    """Names of VLANs and bridges too."""
    code, out, _ = sojourn("tc", "export", "codel", "--dev", name)
    assert code == 0
    assert f"tc qdisc replace dev {name} root" in out


@pytest.mark.parametrize(
    "name", [":X", "..a:X", "a b:X", "x:", ".:X", "a..b:X", "/dev/null:X", "a\nb.py:X", "a\0.py:X",
             "x" * 9999 + ":X", "x" * 9999 + ".py:X", "json:loads", "nobody_has_this:X"]
)  # fmt: skip
def test_names_that_are_no_classes_are_refused(name: str, sojourn: Command) -> None:
    """One line, of a bounded length."""
    for words in (("list", name), ("run", "rrul", "--qdisc", name), ("tc", "diff", name, "red")):
        result = sojourn(*words)
        one_line(result)
        assert len(result[2]) < 1500
