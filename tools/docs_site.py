"""Hook of MkDocs: the pages of reports/, links as on GitHub, patterns in the navigation, figures.

Pages link to files by their path in the repository, so that links work on GitHub. A link to a page
of docs/ or reports/ becomes a link of the site. Any other link becomes one to the repository.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PLAYGROUND = ROOT / "python/sojourn/cli/page"
LINK = re.compile(r"(\]\(<?)([^)\s>#]+)(#[^)\s>]*)?(>?[^)]*\))")
CODE = re.compile(r"(^ *```.*?^ *```|``.*?``|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
DISCIPLINE = re.compile(r"reference/algorithms/disciplines/(\w+)\.md")
PAPER = re.compile(r"reports/papers/([\w-]+)/README\.md")
STORIES = {
    "codel-dc": "incast",
    "codel-vs-drr": "codel-drr",
    "ewfq": "ewfq",
    "hred": "hred",
    "red-vs-taildrop": "red",
}
"""Story of the playground about a paper."""
HEADING = re.compile(r"^# .*\n", re.MULTILINE)
PICTURE = re.compile(r"^!\[.*\]\(.*\.svg\)\n", re.MULTILINE)
UNSEARCHED = 40_000
"""Pages of reports/ with more characters than this are tables of data, left out of the search."""


class GitHubLists(Extension):
    """Lists as on GitHub: two spaces of indentation nest, and no empty line before is needed."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Set the width of an indentation."""
        md.tab_length = 2


def expanded(entry: Any) -> list[Any]:
    """Return the entries of the navigation for one entry that may have a pattern."""
    if isinstance(entry, dict):
        ((title, inner),) = entry.items()
        if isinstance(inner, str) and "*" not in inner:
            return [entry]
        return [{title: navigation(inner if isinstance(inner, list) else [inner])}]
    if "*" not in entry:
        return [entry]
    folder = ROOT if entry.startswith("reports/") else ROOT / "docs"
    pages = sorted(folder.glob(f"{entry}.md"))
    single = "*/" in entry  # the README of each folder
    names = [page.relative_to(folder).as_posix() for page in pages]
    return [name for name in names if single or not name.endswith("README.md")]


def navigation(entries: list[Any]) -> list[Any]:
    """Return the navigation with all patterns replaced by pages."""
    return [one for entry in entries for one in expanded(entry)]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Expand the navigation and read lists as GitHub does."""
    config.nav = navigation(config.nav or [])
    config.markdown_extensions.append(GitHubLists())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of reports/, their files, and the playground if it was built."""
    for path in sorted(PLAYGROUND.rglob("*")):
        # Hosts compress by themselves; the copies with Brotli are for `sojourn playground`.
        if path.is_file() and path.suffix != ".br":
            name = path.relative_to(PLAYGROUND.parent).as_posix()
            file = File(name, str(PLAYGROUND.parent), config.site_dir, config.use_directory_urls)
            file.dest_uri = name.replace("page/", "playground/", 1)
            files.append(file)
    for path in sorted((ROOT / "reports").rglob("*")):
        if path.is_file():
            name = path.relative_to(ROOT).as_posix()
            files.append(File(name, str(ROOT), config.site_dir, config.use_directory_urls))
    return files


def site_target(page: str, target: str, repository: str) -> str:
    """Return where `target`, a link in the file `page` of the repository, leads on the site."""
    if re.match(r"[a-z]+:", target):
        return target
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
    folder = next((one for one in ("docs/", "reports/") if path.startswith(one)), None)
    if folder is None or path.endswith((".ipynb", "/")) or (ROOT / path).is_dir():
        if not (ROOT / path).exists():
            return target  # MkDocs reports it
        return f"{repository}/{'tree' if (ROOT / path).is_dir() else 'blob'}/main/{path}"
    here = posixpath.dirname(page.removeprefix("docs/"))
    return posixpath.relpath(path.removeprefix("docs/"), here or ".")


def live_figure(page: File, built: bool) -> tuple[str, re.Pattern[str]] | None:
    """Return the live figure of a page as HTML, and what it follows; None if the page has none.

    It is loaded when it is opened. If the playground was not built, it is a link.
    """
    discipline, paper = DISCIPLINE.fullmatch(page.src_uri), PAPER.fullmatch(page.src_uri)
    if discipline:
        fragment, after = f"discipline={discipline[1]}", PICTURE
    elif paper and paper[1] in STORIES:
        fragment, after = f"story={STORIES[paper[1]]}", HEADING
    else:
        return None
    folder = posixpath.dirname(page.dest_uri)
    if not built:
        target = posixpath.relpath("how-to/playground.html", folder)
        return f'\n<p><a href="{target}">Run it in the playground</a></p>\n', after
    source = posixpath.relpath("playground/figure.html", folder)
    frame = f'<iframe loading="lazy" title="Live figure" src="{source}#{fragment}"></iframe>'
    return f'\n<details class="live"><summary>Run it here</summary>{frame}</details>\n', after


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page, except in code; leave data out of the search."""
    name = page.file.src_uri
    if not name.startswith("reports/"):
        name = f"docs/{name}"
    elif len(markdown) > UNSEARCHED:
        page.meta["search"] = {"exclude": True}
    repository = config.extra["repository"]

    def rewritten(match: re.Match[str]) -> str:
        before, target, anchor, after = match.groups()
        return f"{before}{site_target(name, target, repository)}{anchor or ''}{after}"

    parts = CODE.split(markdown)
    parts[::2] = [LINK.sub(rewritten, part) for part in parts[::2]]
    text = "".join(parts)
    live = live_figure(page.file, (PLAYGROUND / "figure.html").is_file())
    if live is None:
        return text
    figure, after = live
    return after.sub(lambda match: match[0] + figure, text, count=1)
