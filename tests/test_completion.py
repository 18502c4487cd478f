"""Shell completion offers commands, disciplines and names; the manual page lists every option."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import man
from sojourn.cli.run import app

ROOT = Path(__file__).parent.parent


def offered(line: str) -> list[str]:
    """Return the completions of the last word of a command line, as bash asks for them."""
    words = line.split(" ")
    variables = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    environment = {
        **os.environ,
        **variables,
        "_SOJOURN_COMPLETE": "complete_bash",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "sojourn"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sojourn co", {"compare"}),
        ("sojourn run x.toml --qdisc fq_c", {"fq_codel"}),
        ("sojourn compare x.toml --qdisc codel,fq_c", {"codel,fq_codel"}),
        ("sojourn link --qdisc hr", {"hred"}),
        ("sojourn list jain", {"jain_index"}),
        ("sojourn new up", {"uplink"}),
        ("sojourn paper run hr", {"hred"}),
    ],
)
def test_words_are_completed(line: str, expected: set[str]) -> None:
    """Commands, options and arguments; in a list of disciplines, its last name."""
    assert set(offered(line)) == expected


def test_every_option_is_in_the_manual_page() -> None:
    """The page is generated; `tools/gen.py --check` keeps it up to date."""
    page = (ROOT / "packaging/data/share/man/man1/sojourn.1").read_text(encoding="utf-8")
    assert page == man.page()
    commands = dict(man.commands(get_command(app), "sojourn"))
    assert {"sojourn run", "sojourn link", "sojourn paper run"} <= set(commands)
    for path, command in commands.items():
        assert f".SS {man.escaped(path)}\n" in page
        for parameter in command.params:
            if "--help" not in parameter.opts:
                assert man.escaped(parameter.opts[0]).lower() in page.lower()


def test_text_is_escaped_for_roff() -> None:
    """A line that starts with a dot is no request, and a hyphen is a minus."""
    assert man.escaped(".B\n'a -b\\") == "\\&.B\n\\&'a \\-b\\e"
