#!/bin/sh
# Runs the given tests, which need no more than the packages, on every Python that pyproject.toml names: those that are
# on the PATH, or that uv knows. Those that are not installed are named. Fails where a test fails, or where none ran.
set -u
cd "$(dirname "$0")/.." || exit 1

found() { # what runs as this version, if anything does: a shim may be there for a Python that is not
    for python in "python$1" "$(command -v uv >/dev/null && uv python find --no-project "$1" 2>/dev/null)"; do
        if [ -n "$python" ] && "$python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
            echo "$python"
            return
        fi
    done
}

passed= failed= missing=
for version in $(sed -n 's/.*"Programming Language :: Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml); do
    python=$(found "$version")
    if [ -z "$python" ]; then
        missing="$missing $version"
        continue
    fi
    echo "== Python $version ($python)"
    if make install "VENV=.venv-$version" "PYTHON=$python" && ".venv-$version/bin/python" -m pytest -q -n auto --dist worksteal "$@"; then
        passed="$passed $version"
    else
        failed="$failed $version"
    fi
done
echo "Passed:${passed:- none}. Failed:${failed:- none}. Not installed, and so not run:${missing:- none}."
[ -z "$failed" ] && [ -n "$passed" ]
