#!/usr/bin/env bash
# Installs SOJOURN_PACKAGE into an environment of its own below RUNNER_TEMP, once per job.
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "::error::sojourn link requires Linux" >&2; exit 1; }
place="$RUNNER_TEMP/sojourn-link"
[ -x "$place/bin/sojourn" ] && exit 0
python3 -m venv "$place"
"$place/bin/python" -m pip install --quiet "$SOJOURN_PACKAGE"
"$place/bin/sojourn" --version
