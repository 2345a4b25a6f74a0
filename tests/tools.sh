#!/bin/sh
# Sees that the tools are there with which the tests read what deploy/ holds, the browser and Node that run what is
# written in JavaScript, the proxy of deploy/, and a pooler. Where one is missing it is installed from Debian, by root
# and where no service would be started along with it; else the tests that need it are skipped.
set -eu

missing=
command -v chromium-headless-shell >/dev/null || missing="$missing chromium-headless-shell"
command -v node >/dev/null || missing="$missing nodejs"
command -v promtool >/dev/null || missing="$missing prometheus"
command -v systemd-analyze >/dev/null || missing="$missing systemd"
[ -x /usr/sbin/nginx ] || command -v nginx >/dev/null || missing="$missing nginx-light"
[ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null || missing="$missing pgbouncer"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && [ ! -d /run/systemd/system ] && command -v apt-get >/dev/null; then
    echo "Installing Debian's$missing for the tests ..."
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1  # at which no service is started
    log=$(mktemp)
    # shellcheck disable=SC2086  # a list of packages
    if { apt-get update -qq && apt-get install -qq --no-install-recommends $missing; } >"$log" 2>&1 </dev/null; then
        rm "$log"
        exit 0
    fi
    tail -n 5 "$log"
    rm "$log"
fi
echo "Not installed:$missing (of Debian); the tests that need them are skipped. Any Chromium serves as a browser."
