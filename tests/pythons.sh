#!/bin/sh
# Runs the given tests, which need no more than the packages, on every Python that pyproject.toml names: those that are
# on the PATH, or that uv knows. Those that are not installed are named. Fails where a test fails, or where none ran.
# On the first of them the client's tests run again with httpx2 in place of httpx, and tests/smoke.py with the lowest
# versions that pyproject.toml allows; that needs uv.
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

smoke() { # runs tests/smoke.py on this Python with the lowest versions
    pins=.venv-lowest/requirements.txt
    uv venv --quiet --clear --python "$1" .venv-lowest &&
        uv pip compile --quiet --resolution lowest-direct --python "$1" --extra all --extra experiments \
            --output-file "$pins" pyproject.toml &&
        uv pip install --quiet --python .venv-lowest/bin/python --requirement "$pins" &&
        uv pip install --quiet --python .venv-lowest/bin/python --no-deps --editable . &&
        .venv-lowest/bin/python tests/smoke.py >/dev/null
}

fork() { # runs the tests of the client on this Python with httpx2 alone
    make install VENV=.venv-httpx2 "PYTHON=$1" &&
        .venv-httpx2/bin/python -m pip uninstall --quiet --yes httpx httpcore &&
        .venv-httpx2/bin/python -m pip install --quiet --disable-pip-version-check httpx2 &&
        .venv-httpx2/bin/python -m pytest -q -n auto tests/client tests/attacker/test_campaign.py
}

passed= failed= first= missing=
for version in $(grep -o 'Python :: 3\.[0-9]*' pyproject.toml | cut -d ' ' -f 3); do
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
    first=${first:-$python}
done
if [ -n "$first" ]; then
    echo "== httpx2 in place of httpx ($first)"
    if fork "$first"; then passed="$passed httpx2"; else failed="$failed httpx2"; fi
    if command -v uv >/dev/null; then
        echo "== The lowest versions ($first)"
        if smoke "$first"; then passed="$passed lowest"; else failed="$failed lowest"; fi
    else
        missing="$missing uv, for the lowest versions"
    fi
fi
echo "Passed:${passed:- none}. Failed:${failed:- none}. Not installed, and so not run:${missing:- none}."
[ -z "$failed" ] && [ -n "$passed" ]
