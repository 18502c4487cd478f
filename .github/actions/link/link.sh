#!/usr/bin/env bash
# Runs SOJOURN_RUN behind a link, as the user of the job. The link itself needs root.
set -euo pipefail
sojourn="$RUNNER_TEMP/sojourn-link/bin/sojourn"
report="$RUNNER_TEMP/sojourn-link.json"
rm -f "$report"

options=()
if [ -n "${SOJOURN_LINE:-}" ]; then
    options+=(--profile "$SOJOURN_LINE")
fi
# Options are words of a shell: quotes group them, and nothing is expanded or run.
if [ -n "${SOJOURN_OPTIONS:-}" ]; then
    while IFS= read -r -d '' word; do
        options+=("$word")
    done < <(python3 -c 'import os, shlex
for word in shlex.split(os.environ["SOJOURN_OPTIONS"]):
    print(word, end="\0")')
fi
if [ ${#options[@]} -eq 0 ]; then
    echo "::error::give line, options or both" >&2
    exit 2
fi

command=(bash -e -o pipefail -c "$SOJOURN_RUN")
root=()
if [ "$(id -u)" -ne 0 ]; then
    root=(sudo --preserve-env)
    command=(sudo --preserve-env --user "$(id -un)" -- env "PATH=$PATH" "HOME=$HOME" "${command[@]}")
fi
code=0
"${root[@]}" "$sojourn" link "${options[@]}" --json-to "$report" -- "${command[@]}" || code=$?

if [ -s "$report" ]; then
    echo "report=$report" >>"$GITHUB_OUTPUT"
    trusted=$(python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
for warning in report["warnings"]:
    print(f"::warning::sojourn link: {warning}", file=sys.stderr)
print(str(report["trusted"]).lower())' "$report")
    if [ "$code" -eq 0 ] && [ "${SOJOURN_TRUSTED:-false}" = true ] && [ "$trusted" != true ]; then
        echo "::error::the times of the link are not to be trusted" >&2
        code=1
    fi
fi
exit "$code"
