"""LaTeX tables: special characters are escaped, every row has all cells."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import sojourn as sj
from conftest import Command
from sojourn.display.latex import ESCAPES, escaped, tabular
from sojourn.display.table import Table

NASTY = "".join(ESCAPES) + "\x1b[31m a\tb\n[x]*"


def check(text: str, columns: int) -> list[str]:
    """Check that this is a tabular without packages and with complete rows; return the rows."""
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert re.fullmatch(rf"\\begin\{{tabular\}}\{{[lr]{{{columns}}}\}}", body[0])
    assert body[-1] == r"\end{tabular}"
    rows = [line for line in body[1:-1] if line != r"\hline"]
    for row in rows:
        assert row.endswith(r" \\")
        cells = len(re.findall(r"(?<!\\)&", row)) + 1
        assert cells == (1 if row.startswith(r"\multicolumn") else columns), row
        # Braces are balanced and every other special character is a command's or escaped.
        plain = re.sub(r"\\[\\{}$&#%_]|\\[a-zA-Z]+|\$(?:\\pm|-|\^\{\*\})\$", "", row)
        assert plain.count("{") == plain.count("}")
        assert not re.search(r"[$#%_^~\\]", plain), row
    return rows


def test_every_special_character_is_escaped() -> None:
    """In names, headers, headings and cells; numbers have true minus signs."""
    table = Table(NASTY, "a_b", "c%")
    table.add_heading(NASTY)
    table.add_row(f"  {NASTY}", "-0.26 ± 0.05*", "1e-07 ")
    table.add_row("[x]", "*", "-")
    text = tabular(table, "note\nof two lines")
    assert text.startswith("% note\n% of two lines\n")
    rows = check(text, 3)
    assert rows[2].startswith(r"\quad ")
    assert r"$-$0.26 $\pm$ 0.05$^{*}$ & 1e-07 \\" in rows[2]
    assert rows[3].startswith("{[x]} & ")
    assert escaped("a_b & 5 %") == r"a\_b \& 5 \%"


def test_results_and_comparisons_are_exported(
    small: Path, tmp_path: Path, sojourn: Command
) -> None:
    """The file has the same numbers as the terminal."""
    sj.sweep(small, {"qdisc": {"set": "up.qdisc", "values": ["red", "codel"]}}, seeds=3,
             out=tmp_path / "out")  # fmt: skip
    file = tmp_path / "table.tex"
    code, _, err = sojourn("results", tmp_path / "out", "--export", file)
    assert (code, err) == (0, "")
    rows = check(file.read_text(), 5)
    assert rows[0] == r"qdisc & runs & utilisation, \% & sojourn\_p99, ms & loss\_rate, \% \\"
    assert len(rows) == 3
    assert r"$\pm$" in rows[1]
    code, out, err = sojourn("compare", small, "--qdisc", "droptail,fq_codel", "--seeds", "3",
                             "--export", file)  # fmt: skip
    assert (code, err) == (0, "")
    rows = check(file.read_text(), 3)
    assert rows[0] == r" & droptail & fq\_codel \\"
    [delay] = [row for row in rows if "one-way" in row]
    [shown] = [line for line in out.splitlines() if "one-way" in line]
    assert (
        delay.replace(r"$\pm$", "±").replace(r"\%", "%").replace("$^{*}$", "*").split(" & ")[1]
        in shown
    )
    for name in ("table.txt", "missing/table.tex"):
        code, _, err = sojourn("compare", small, "--qdisc", "red", "--export", tmp_path / name)
        assert code == 2
        assert name in err


def test_it_compiles(tmp_path: Path) -> None:
    """LaTeX compiles the table. In CI it must be installed."""
    if shutil.which("pdflatex") is None and not os.environ.get("CI"):
        pytest.skip("pdflatex is not installed")
    table = Table(NASTY, "x")
    table.add_heading(NASTY)
    table.add_row(NASTY, "-1 ± 2*")
    text = "\\documentclass{article}\n\\begin{document}\n"
    (tmp_path / "x.tex").write_text(text + tabular(table) + "\\end{document}\n")
    subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"],
                   cwd=tmp_path, check=True, capture_output=True)  # fmt: skip
