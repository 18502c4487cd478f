"""The command `sojourn new`: scenario templates, which are the files in `templates/`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from sojourn._sojourn import InputError

FOLDER = Path(__file__).parent / "templates"

ORDER = (
    "uplink",
    "two-way",
    "tcp-mix",
    "parking-lot",
    "load-step",
    "wireless",
    "incast",
    "dctcp",
    "leaf-spine",
)
"""Names of the templates, the most common uses first."""


def templates(incomplete: str) -> Iterator[str]:
    """Yield the templates whose name begins with `incomplete`, for shell completion."""
    yield from (name for name in ORDER if name.startswith(incomplete))


def text(name: str, file: str) -> str:
    """Return the text of a template, with the name `file` in its comments.

    Raises InputError for an unknown template.
    """
    from sojourn._util.inputs import near, shown

    if name not in ORDER:
        raise InputError(f"new: unknown template {shown(name)}{near(name, ORDER)}")
    return (FOLDER / f"{name}.toml").read_text().replace("FILE", file)


def about(name: str) -> str:
    """Return the first sentence of a template."""
    lines = []
    for line in text(name, "").splitlines():
        lines.append(line.lstrip("# "))
        if line == "#":
            break
    return " ".join(lines).strip()


def new(
    template: Annotated[
        str | None,
        typer.Argument(help="name of the template", show_default=False, autocompletion=templates),
    ] = None,
    file: Annotated[
        Path | None, typer.Argument(help="file to write: .toml", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite the file")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="list the templates as JSON")] = False,
) -> None:
    """Write a commented scenario template, or print it.

    Without a name, list the templates.
    """
    template = template and template.lower().replace("_", "-")
    if template is None:
        _list(as_json)
    elif file is None:
        print(text(template, f"{template}.toml"), end="")
    else:
        _write(template, file, force)


def _list(as_json: bool) -> None:
    if as_json:
        import json

        print(json.dumps([{"name": name, "about": about(name)} for name in ORDER], indent=2))
        return
    from sojourn.display.console import console
    from sojourn.display.table import Table

    table = Table("template", "scenario", prose=[1])
    for name in ORDER:
        table.add_row(name, about(name))
    out = console()
    out.print(table, soft_wrap=True)
    out.print("\nsojourn new TEMPLATE prints one, sojourn new TEMPLATE FILE.toml writes it.")


def _write(template: str, file: Path, force: bool) -> None:
    from sojourn._util.files import check_file, write_text

    scenario = text(template, _word(file) if str(file).isprintable() else f"{template}.toml")
    check_file(file, (".toml",))
    if file.exists() and not force:
        raise InputError(f"{file}: exists already; --force overwrites it")
    write_text(file, scenario)
    print(f"{file}: try sojourn run {_word(file)}")


def _word(file: Path) -> str:
    """Return a file name quoted for a shell."""
    import shlex

    return shlex.quote(str(file))
