#!/bin/sh
# Sees that the tools are there with which the tests read what deploy/ holds, the browser and Node that run what is
# written in JavaScript, the proxy of deploy/, and a pooler. Where one is missing it is installed from Debian or Ubuntu:
# by root where no service would be started along with it, and in CI by whoever may use sudo. Else the tests that need
# it are skipped; in CI those of the proxy and the pooler fail.
set -eu

missing=
need() { # adds the packages, unless one of the programs that follow is there
    packages=$1
    shift
    for program; do
        if command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ]; then return; fi
    done
    missing="$missing $packages"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo --non-interactive "$@"; fi
}

may_install() {
    if ! command -v apt-get >/dev/null; then return 1; fi
    if [ "${CI:-}" = true ]; then as_root true; else [ "$(id -u)" = 0 ] && [ ! -d /run/systemd/system ]; fi
}

# Playwright's own Node links libatomic.
need "chromium-headless-shell libatomic1" chromium-headless-shell chromium chromium-browser google-chrome
need nodejs node
need prometheus promtool
need systemd systemd-analyze
need nginx-light nginx
need pgbouncer pgbouncer
[ -n "$missing" ] || exit 0

if may_install 2>/dev/null; then
    echo "Installing Debian's$missing for the tests ..."
    log=$(mktemp)
    # At runlevel 1 no service is started.
    # shellcheck disable=SC2086  # a list of packages
    if {
        as_root apt-get update -qq &&
            as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -qq --no-install-recommends $missing
    } >"$log" 2>&1 </dev/null; then
        rm "$log"
        exit 0
    fi
    tail -n 5 "$log"
    rm "$log"
fi
echo "Not installed:$missing (of Debian); the tests that need them are skipped. Any Chromium serves as a browser."
