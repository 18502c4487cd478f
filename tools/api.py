"""List the public items of the Rust crates, from the sources, as text under version control.

`tools/api.py` writes tests/golden/api/CRATE.txt; `tools/api.py --check` prints what differs and
exits with 1. A listing has a line for each public item: signature, fields, variants, derives, the
parameters of `params!` with defaults and ranges, and the traits that a type implements. It needs
no nightly compiler, unlike cargo-public-api, and no build. It relies on the format of rustfmt.
"""

import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests/golden/api"
CRATES = ("aqm", "sim", "live")

Item = tuple[list[str], str, list[str]]
"""Attributes, signature, and the lines of the body without their indentation."""

DEFINITION = re.compile(r"pub (?:struct|enum|trait) (\w+)")
HIDDEN = re.compile(r"#\[(doc\(hidden\)|cfg\((test|doctest)\)|test)\]")


def items(lines: list[str]) -> Iterator[Item]:
    """Yield the items of a block that starts at column 0."""
    attributes: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line or line.startswith(("//", "}")):
            continue
        head = line
        while not ended(head) and at < len(lines):
            head += " " + lines[at].strip()
            at += 1
        if head.startswith("#!["):
            continue
        if head.startswith("#["):
            attributes.append(head)
            continue
        body: list[str] = []
        if head.endswith("{"):
            end = next((i for i in range(at, len(lines)) if lines[i].startswith("}")), len(lines))
            body = [inner[4:] for inner in lines[at:end]]
            at = end + 1
        yield attributes, head, body
        attributes = []


def ended(head: str) -> bool:
    """Return true if `head` is a whole signature."""
    plain = re.sub(r"\"(\\.|[^\"])*\"|'.'|//.*", "", head)
    if any(plain.count(a) != plain.count(b) for a, b in ("()", "[]")):
        return False
    if plain.startswith("#"):
        return True
    if re.match(r"(pub(\(\w+\))? )?use ", plain):
        return plain.endswith(";")
    if re.search(r"\bwhere\b", plain) and plain.endswith(","):
        return False
    return plain.endswith(("{", "}", ";", ","))


def declared(item: Item, setters: dict[str, list[str]]) -> list[Item]:
    """Return what `controls!` and `table!` declare; any other item, with its setters, as it is."""
    attributes, head, body = item
    if head.endswith("controls! {"):
        return controls(body)
    if head == "table! {":
        return table(body)
    inner = [line for each in body for line in setters.get(each.removesuffix("!();"), [each])]
    return [(attributes, head, inner)]


def controls(body: list[str]) -> list[Item]:
    """Return what a list of congestion controls declares."""
    matches = [re.match(r"(\w+)::\{(\w+), (\w+)\}: (.*), \[", line) for line in body]
    lines = [line.groups() for line in matches if line]
    exported = [(module, params) for module, _, params, _ in lines]
    enums = {
        "ControlParams": [f"{name}({params})," for _, name, params, _ in lines],
        "ControlAlgorithm": [f"{name}({control})," for _, name, _, control in lines],
    }
    return [
        ([], "pub(crate) mod params {", [f"pub use super::{m}::{p};" for m, p in exported]),
        *(([], f"pub enum {name} {{", variants) for name, variants in enums.items()),
        ([], "pub const TCPS: &[TcpEntry];", []),
    ]


def keys(body: list[str]) -> list[tuple[str, str, bool]]:
    """Return name, type, and true if it is optional, of the typed keys of a table."""
    matches = (re.match(r"(\w+)(?: = .*?)?: (\w+), (optional )?", line) for line in body)
    return [(key[1], key[2], key[3] is not None) for key in matches if key]


def table(body: list[str]) -> list[Item]:
    """Return what a table of keys declares: the table, and a getter of each typed key."""
    text = "\n".join(body)
    name = re.search(r"^static (\w+)", text, re.MULTILINE)
    owner = re.search(r", struct \w+ of (\w+),", text)
    assert name, "a table has a name"
    listed: list[Item] = [([], f"pub static {name[1]}: Table;", [])]
    if owner:
        types = [(key, f"Option<{kind}>" if option else kind) for key, kind, option in keys(body)]
        getters = [f"pub fn {key}(&self) -> {kind} {{" for key, kind in types]
        listed.append(([], f"impl {owner[1]} {{", [f"{line} }}" for line in getters]))
    return listed


def setters_of(text: str) -> dict[str, list[str]]:
    """Return the setters of each macro of setters that a `table!` in `text` declares."""
    setters: dict[str, list[str]] = {}
    for block in re.findall(r"^table! \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        if name := re.search(r", setters (\w+);", block):
            lines = [line[4:] for line in block.split("\n")]
            typed = keys(lines)
            setters[name[1]] = [f"pub fn {k}(self, {k}: {t}) -> Self {{ }}" for k, t, _ in typed]
    return setters


def module_of(path: Path, source: Path) -> str:
    """Return the module whose text is in the file `path`; the crate is ""."""
    parts = path.relative_to(source).with_suffix("").parts
    return "::".join(parts[:-1] if parts[-1] in ("lib", "mod") else parts)


def signature(head: str) -> str:
    """Return a signature without its body and value."""
    head = re.sub(r"\s+", " ", head)
    head = re.sub(r"([(\[]) | ?,? ([)\]])", lambda m: m[1] or m[2], head)
    if re.match(r"(pub )?(const |unsafe )*fn ", head) or head.startswith(("impl", "pub trait")):
        head = head.split(" {")[0]
    elif re.match(r"pub (static|const) ", head):
        head = head.split(" = ")[0]
    return head.rstrip(" {;,")


def marks(attributes: list[str]) -> str:
    """Return the attributes that are part of the interface."""
    kept = [a for a in attributes if a.startswith(("#[derive", "#[non_exhaustive", "#[repr"))]
    return "".join(f"{a} " for a in kept)


Use = tuple[str, set[str]]
"""Path of a module, and names that are exported from it."""


class Listing:
    """Listing of one crate."""

    def __init__(self, source: Path) -> None:
        """Read the crate with this `src` folder."""
        self.lines: list[str] = []
        self.listed: set[tuple[str, str]] = set()
        texts = {module_of(path, source): path.read_text() for path in source.rglob("*.rs")}
        types = re.compile(r"^ *pub (?:struct|enum|trait) (\w+)", re.MULTILINE)
        self.types = {name: 0 for text in texts.values() for name in types.findall(text)}
        for name in (name for text in texts.values() for name in types.findall(text)):
            self.types[name] += 1
        setters = setters_of("\n".join(texts.values()))
        self.modules = {
            path: [one for item in items(text.split("\n")) for one in declared(item, setters)]
            for path, text in sorted(texts.items())
        }
        self.public = {""}
        self.reach("")
        for path in sorted(self.public):
            self.module(path)

    def reach(self, path: str) -> None:
        """Note the public modules below `path`."""
        for attributes, head, _ in self.modules[path]:
            if child := re.match(r"pub mod (\w+);", head):
                below = f"{path}::{child[1]}".removeprefix("::")
                if not any(HIDDEN.match(a) for a in attributes) and below in self.modules:
                    self.public.add(below)
                    self.reach(below)

    def module(self, path: str) -> None:
        """List a public module. Names of private modules belong to it."""
        self.lines.append(f"mod {path or 'crate'}")
        self.items(path, None)
        for target, names in self.uses(path, "pub"):
            if target not in self.public:
                self.exported(target, names)

    def items(self, path: str, only: set[str] | None) -> None:
        """List the items of a module; `only` are the names that another module exports."""
        for attributes, head, body in self.modules[path]:
            if not any(HIDDEN.match(a) for a in attributes):
                self.item(attributes, head, body, only)

    def exported(self, path: str, names: set[str]) -> None:
        """List `names` of the private module `path`, with their methods in other files."""
        names = {name for name in names if (path, name) not in self.listed}
        self.listed.update((path, name) for name in names)
        self.items(path, names)
        for target, again in self.uses(path, r"pub(?:\(\w+\))?"):
            if names & again and target not in self.public:
                self.exported(target, names & again)
        heads = [head for _, head, _ in self.modules[path]]
        defined = {m[1] for m in map(DEFINITION.match, heads) if m} & names
        for other, listed in self.modules.items():
            if other == path or other in self.public:
                continue
            own = {n for n in defined if self.types.get(n) == 1 or other.startswith(f"{path}::")}
            for attributes, head, body in listed:
                block = re.match(r"impl(?:<.*?>)? (\w+)(?:<.*>)? \{", head)
                if block and block[1] in own:
                    self.item(attributes, head, body, own)

    def uses(self, path: str, visibility: str) -> list[Use]:
        """Return the names that a module uses from others of this crate with `visibility`."""
        uses: list[Use] = []
        for attributes, head, _ in self.modules[path]:
            use = re.match(visibility + r" use ([\w:]+)::(\{.*\}|\w+|\*);", head)
            if not use or any(HIDDEN.match(a) for a in attributes):
                continue
            parts, base = use[1].split("::"), path.split("::") if path else []
            if parts[0] in ("crate", "self"):
                parts, base = parts[1:], base if parts[0] == "self" else []
            target = "::".join(base + parts)
            if target in self.modules:
                uses.append((target, set(re.findall(r"\w+", use[2]))))
            elif use[2] == "*" and (parent := target.rpartition("::")[0]) in self.modules:
                uses += self.inline(parent, parts[-1])
        return uses

    def inline(self, path: str, name: str) -> list[Use]:
        """Return the names that the module `name` inside the file of `path` uses."""
        head = re.compile(rf"pub(\(crate\))? mod {name} \{{")
        bodies = [body for _, opening, body in self.modules[path] if head.match(opening)]
        lines = [line for body in bodies for line in body]
        uses = (re.match(r"pub use super::([\w:]+)::(\w+);", line) for line in lines)
        return [(f"{path}::{use[1]}", {use[2]}) for use in uses if use]

    def item(
        self, attributes: list[str], head: str, body: list[str], only: set[str] | None
    ) -> None:
        """List one item, with what is inside."""
        if re.match(r"(\w+::|\$crate::)*(params|choice)! \{", head):
            for inner in items(body):
                self.item(*inner, only)
            return
        if head.startswith("macro_rules!") and "#[macro_export]" in attributes:
            self.lines.append(f"    macro {head.split()[1]}!")
            return
        named = re.match(r"pub (?:const fn|fn|struct|enum|trait|type|const|static) (\w+)", head)
        block = re.match(r"impl(?:<.*?>)? (?:.* for )?&?(\w+)", head)
        match = named or block
        is_listed = match is not None and (only is None or match[1] in only)
        if head.startswith("pub use") and only is None:
            self.lines.append(f"    {signature(head)}")
        elif is_listed and (named or (match and match[1] in self.types)):
            inside = self.inside(head, body)
            if named or inside or " for " in head:
                self.lines += [f"    {marks(attributes)}{signature(head)}", *inside]

    @staticmethod
    def inside(head: str, body: list[str]) -> list[str]:
        """Return the fields, variants or methods of an item."""
        if re.match(r"impl.* for ", head) or re.match(r"pub (const )?fn", head):
            return []
        public = head.startswith(("pub enum", "pub trait"))
        parameters = any(re.match(r"\w+: .* = ", line) for line in body)
        lines: list[str] = []
        for attributes, inner, fields in items(body):
            if any(HIDDEN.match(a) for a in attributes):
                continue
            if parameters and lines and not re.match(r"\w+: ", inner):
                lines[-1] += f", {signature(inner).strip()}"  # the rest of a parameter
            elif public or parameters or inner.startswith("pub "):
                named = " ".join(signature(field) for _, field, _ in items(fields))
                variant = f" {{ {named} }}" * (inner.endswith("{") and public and "(" not in inner)
                lines.append(f"        {marks(attributes)}{signature(inner)}{variant}")
        return lines


def path(crate: str) -> Path:
    """Return the file of a listing."""
    return GOLDEN / f"sojourn-{crate}.txt"


def listing(crate: str) -> str:
    """Return the listing of a crate."""
    return "\n".join(Listing(ROOT / "crates" / crate / "src").lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write or check the listings."""
    if set(arguments) - {"--check"}:
        sys.exit(f"allowed: --check, not {' '.join(arguments)}")
    changed = 0
    for crate in CRATES:
        file, now = path(crate), listing(crate)
        before = file.read_text() if file.exists() else ""
        if before == now:
            continue
        changed += 1
        if "--check" in arguments:
            diff = difflib.unified_diff(before.split("\n"), now.split("\n"), "listed", "now", n=0)
            print(*diff, sep="\n")
            print(f"api: the public items of sojourn-{crate} changed; run `tools/api.py` if meant")
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(now)
            print(f"api: {file.relative_to(ROOT)} written")
    return 1 if changed and "--check" in arguments else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
