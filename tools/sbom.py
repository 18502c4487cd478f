"""List the software bill of materials of a wheel, and check it against Cargo.lock.

maturin writes it into each wheel, as `sojourn-X.Y.Z.dist-info/sboms/sojourn-py.cyclonedx.json`
(CycloneDX, PEP 770): all crates that are compiled into the module, with version, licence and hash.
"""

import json
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "sojourn-py.cyclonedx.json"


def components(wheel: Path) -> dict[str, str]:
    """Return the version of each crate that the bill of materials of `wheel` names."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(f".dist-info/sboms/{NAME}")]
        if not names:
            raise SystemExit(f"{wheel.name}: no {NAME} in .dist-info/sboms")
        bill = json.loads(archive.read(names[0]))
    return {part["name"]: part["version"] for part in bill["components"]}


def faults(named: dict[str, str], root: Path = ROOT) -> list[str]:
    """Return one line for each difference from Cargo.lock and the requirements of the module."""
    lock = tomllib.loads((root / "Cargo.lock").read_text())
    locked = {(package["name"], package["version"]) for package in lock["package"]}
    required = tomllib.loads((root / "crates/py/Cargo.toml").read_text())["dependencies"]
    lines = [
        f"{name} {version}: not in Cargo.lock"
        for name, version in sorted(named.items())
        if (name, version) not in locked
    ]
    return lines + [f"{name}: missing" for name in sorted(required) if name not in named]


def main() -> None:
    """Check the wheel named on the command line; exit with 1 at a difference."""
    wheel = Path(sys.argv[1])
    named = components(wheel)
    if lines := faults(named):
        raise SystemExit("\n".join(f"{wheel.name}: {line}" for line in lines))
    print(f"{wheel.name}: {NAME} names {len(named)} crates")


if __name__ == "__main__":
    main()
