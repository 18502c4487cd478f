#!/usr/bin/env bash
# Installs the wheel in the folder $1 into a clean virtual environment and runs the demo there, with no
# Rust in reach: what a user of the wheel gets.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(ls -t "$1"/sojourn-*.whl | head -1)
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
"${PYTHON:-python3}" "$root/tools/sbom.py" "$wheel"
"${PYTHON:-python3}" -m venv "$room/venv"
"$room/venv/bin/python" -m pip install --quiet "$wheel"
"$room/venv/bin/python" - <<'PYTHON'
from importlib.metadata import entry_points
[plugin] = [one for one in entry_points(group="pytest11") if one.name == "sojourn"]
assert plugin.value == "sojourn.pytest_plugin", plugin
PYTHON
cd "$room"
PATH="$room/venv/bin:/usr/bin:/bin" sojourn compare "$root/examples/home-uplink.toml" \
    --qdisc droptail,red,codel,fq_codel --plot "$room/figure.png"
test -s "$room/figure.png"
PATH="$room/venv/bin:/usr/bin:/bin" sojourn new incast incast.toml
PATH="$room/venv/bin:/usr/bin:/bin" sojourn run incast.toml
# Papers are in a package of their own, sojourn-lab; one line says so.
! PATH="$room/venv/bin:/usr/bin:/bin" sojourn paper list 2>"$room/refused"
test "$(wc -l <"$room/refused")" = 1
grep --quiet "pip install 'sojourn\[papers\]'" "$room/refused"
echo "$(basename "$wheel"): runs in a clean environment"
