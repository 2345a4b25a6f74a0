#!/bin/sh
# Builds wheel and sdist in dist/ with the build tools of the given Python, and plays a demo from the wheel outside the
# checkout: installed once with the versions of the lock, and once with the newest ones that the index has, by uvx too
# where there is one. From the sdist, elsewhere and under another umask, the same bytes must be built again.
set -eu
cd "$(dirname "$0")/.."
python=$(pwd)/$1
lock=$(pwd)/deploy/command.lock
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() { # builds this target of the current folder into dist/
    "$python" -m hatchling build --target "$1"
}

install() { # installs into the environment of this name, which is made; pip's options follow
    [ -d "$work/$1" ] || "$python" -m venv --without-pip "$work/$1"
    name=$1
    shift
    "$python" -m pip --python "$work/$name/bin/python" install --quiet --disable-pip-version-check --no-compile "$@"
}

locked() {
    install locked --no-deps --require-hashes --requirement "$lock"
    install locked --no-deps --no-index "$wheel"
    "$work/locked/bin/ldprecover" demo --users 2000
}

newest() {
    install newest "$wheel[cli]"
    "$work/newest/bin/ldprecover" demo --users 2000
    if command -v uvx >/dev/null; then
        uvx --isolated --from "$wheel[cli]" ldprecover demo --users 2000
    fi
}

rm -rf dist
build sdist
build wheel
wheel=$(echo "$(pwd)"/dist/*.whl)
mkdir "$work/sdist"
tar --extract --file dist/*.tar.gz --directory "$work/sdist" --strip-components 1
cd "$work/sdist"
# An sdist would have the PKG-INFO of this one beside its own.
(umask 077 && build wheel && rm PKG-INFO && build sdist)
for file in "${wheel%/*}"/*; do
    cmp "$file" "dist/${file##*/}"
done
cd "$work"

locked >locked.log 2>&1 &
first=$!
newest >newest.log 2>&1 || { cat newest.log; exit 1; }
wait $first || { cat locked.log; exit 1; }
sha256sum "${wheel%/*}"/*
echo "The wheel runs with the locked and with the newest versions, and the sdist builds both again."
