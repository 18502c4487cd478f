"""Code blocks of Markdown pages."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def blocks(language: str, page: str = "README.md") -> list[str]:
    """Return the code blocks of a page in one language."""
    code_blocks: list[str] = []
    inside = None
    for line in (ROOT / page).read_text().splitlines(keepends=True):
        if line.startswith("```"):
            inside = line[3:].strip() if inside is None else None
            code_blocks += [""] if inside == language else []
        elif inside == language:
            code_blocks[-1] += line
    return code_blocks
