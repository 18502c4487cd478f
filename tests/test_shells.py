"""Prompt and settings of a shell inside a link."""

import os
import sys
from pathlib import Path

import pytest

from live_link import ENVIRONMENT, lacking, require
from live_terminal import terminal
from sojourn.live import shells

OWN = {
    "bash": (".bashrc", "PS1='mine> '\nhello() { echo \"own$((20 + 22))\"; }\n"),
    "zsh": (".zshrc", "PS1='mine> '\nhello() { echo \"own$((20 + 22))\"; }\n"),
    "sh": (".shrc", "PS1='mine> '\nhello() { echo \"own$((20 + 22))\"; }\n"),
    "fish": (
        ".config/fish/config.fish",
        "function fish_prompt; printf 'mine> '; end\nfunction hello; echo own(math 20 + 22); end\n",
    ),
}
"""Start-up file of the user for each shell: a prompt and a function."""


def home(path: Path, shell: str, more: str = "") -> dict[str, str]:
    """Write a home directory with the shell's start-up file; return the environment for it."""
    name, text = OWN[shell]
    (path / name).parent.mkdir(parents=True, exist_ok=True)
    (path / name).write_text(text + more, encoding="utf-8")
    environment = {
        name: text for name, text in ENVIRONMENT.items() if name not in ("ZDOTDIR", "ENV")
    }
    environment |= {"HOME": str(path), "SHELL": shell, "TERM": "dumb", "SOJOURN_PROMPT": ""}
    return environment | ({"ENV": str(path / name)} if shell == "sh" else {})


def line(*options: str) -> list[str]:
    """Return the command line of a link with a shell."""
    return [sys.executable, "-m", "sojourn", "link", "--rate", "10mbit", *options]


@pytest.mark.live
@pytest.mark.parametrize("shell", OWN)
def test_the_prompt_names_the_link(shell: str, tmp_path: Path) -> None:
    """Before the prompt of the user; functions of the user are defined."""
    require(shell)
    with terminal(line(), home(tmp_path, shell)) as screen:
        screen.until("[sojourn 10mbit] mine> ")
        screen.type("hello\n")
        screen.until("own42")
        screen.read(lambda text: text.count(b"[sojourn 10mbit] mine> ") >= 2)
        screen.type("exit 7\n")
        assert screen.end() == 7
    assert b"not found" not in screen.written


@pytest.mark.live
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_prompt_that_changes_names_the_link_each_time(shell: str, tmp_path: Path) -> None:
    """As with tools that set the prompt before each line, for example to show a branch."""
    require(shell)
    hooks = {
        "bash": 'n=0; renew() { n=$((n + 1)); PS1="fresh$n> "; }; PROMPT_COMMAND=renew\n',
        "zsh": 'n=0; renew() { n=$((n + 1)); PS1="fresh$n> " }; precmd_functions=(renew)\n',
    }
    with terminal(line(), home(tmp_path, shell, hooks[shell])) as screen:
        screen.until("[sojourn 10mbit] fresh1> ")
        screen.type("true\n")
        screen.until("[sojourn 10mbit] fresh2> ")
        screen.type("exit\n")
        assert screen.end() == 0


@pytest.mark.live
def test_a_shell_given_as_command_names_the_link(tmp_path: Path) -> None:
    """Both directions are named if they differ, and so are nested links."""
    environment = home(tmp_path, "sh")
    options = ["--down", "rate=50mbit", "--", "sh"]
    with terminal(line(*options), environment | {"SHELL": "/bin/false"}) as screen:
        screen.until("[sojourn 10mbit/50mbit] mine> ")
        inner = [sys.executable, "-m", "sojourn", "link", "--rate", "1mbit", "--", "sh"]
        screen.type(f"{' '.join(inner)}\n")
        screen.until("[sojourn 10mbit/50mbit] [sojourn 1mbit] ")
        screen.type("exit\n")
        screen.type("exit\n")
        assert screen.end() == 0


@pytest.mark.live
def test_the_terminal_is_given_back(tmp_path: Path) -> None:
    """A script can read from it after the link has ended."""
    shell = " ".join(line("--", "bash" if not lacking("bash") else "sh"))
    script = f"{shell}; read word; echo got $word"
    with terminal(["sh", "-c", script], home(tmp_path, "bash")) as screen:
        screen.until("[sojourn 10mbit] ")
        screen.type("exit\n")
        screen.until("malformed")
        screen.type("this\n")
        screen.until("got this")
        assert screen.end() == 0


@pytest.mark.live
def test_a_shell_that_stopped_for_the_terminal_continues(tmp_path: Path) -> None:
    """A shell stops itself if it looks at the terminal just before it is given to it."""
    shell = tmp_path / "bash"
    shell.write_text("#!/bin/sh\nsleep 0.5\nkill -TTIN $$\necho it continues\n")
    shell.chmod(0o755)
    with terminal(line("--", str(shell)), home(tmp_path, "sh")) as screen:
        screen.until("it continues")
        assert screen.end() == 0


def test_labels_and_command_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a shell alone that reads from a terminal is given anything."""
    links = {"up": {"rate": "10mbit"}, "down": {"rate": "10mbit"}}
    assert shells.label(links) == "[sojourn 10mbit] "
    assert shells.label(links | {"down": {"rate": "5mbit"}}) == "[sojourn 10mbit/5mbit] "
    traced = {"rate": "5mbit", "trace": {"opportunities_ms": [1]}}
    assert shells.label(links | {"up": traced}) == "[sojourn trace/10mbit] "
    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setenv("ZDOTDIR", "/mine")
    monkeypatch.delenv("ENV", raising=False)
    command, variables = shells.interactive(["/usr/bin/zsh"], links)
    assert command == ["/usr/bin/zsh"]
    assert variables["SOJOURN_ZDOTDIR"] == "/mine"
    assert Path(variables["ZDOTDIR"], ".zshrc").is_file()
    command, _ = shells.interactive(["bash"], links)
    assert command[:2] == ["bash", "--rcfile"]
    assert Path(command[2]).is_file()
    _, variables = shells.interactive(["dash"], links)
    assert Path(variables["ENV"]).is_file()
    assert "SOJOURN_ENV" not in variables
    for other in (["bash", "-c", "true"], ["python3"]):
        assert shells.interactive(other, links)[0] == other
    monkeypatch.setattr(os, "isatty", lambda _: False)
    assert shells.interactive(["bash"], links)[0] == ["bash"]
