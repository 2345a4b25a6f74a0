#!/bin/bash
# Makes a clean Debian 12 with debootstrap, and runs tests/deployment/inside.sh in it, as root. Where systemd cannot be
# process 1 there, it says why, and tests/deployment/systemctl obeys the units' lines instead.
#
# usage: tests/deployment/run.sh [COMMAND]   COMMAND FOLDER lets a folder reach packages, behind a proxy say
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "$(id -u)" != 0 ]; then exec sudo "$0" "$@"; fi
root=$(mktemp -d)
chmod 755 "$root" # services run as other users
stop() {
    if [ -n "${space-}" ]; then kill -9 "$init" "$space" && wait "$space"; fi &>/dev/null || true
}
trap 'stop; rm -rf --one-file-system "$root"' EXIT

command -v debootstrap >/dev/null || apt-get install --yes -qq debootstrap
programs=ca-certificates,curl,openssl,procps,systemd-sysv
debootstrap --variant=minbase --include=$programs bookworm "$root" >/dev/null
mkdir -p "$root/source" "$root/var/lib/postgresql"
git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$root/source"
echo "127.0.0.1 localhost ldp.example.org" >"$root/etc/hosts"
cp /etc/resolv.conf "$root/etc/"
printf '%s;\n' 'APT::Get::Assume-Yes "true"' 'APT::Install-Recommends "false"' >"$root/etc/apt/apt.conf.d/99test"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/99test"
cp tests/deployment/certbot "$root/usr/local/bin/"
if [ -n "${1-}" ]; then "$1" "$root"; fi

start() { # starts process 1 in namespaces of its own
    # shellcheck disable=SC2016  # $1 is the folder
    unshare --fork --kill-child --pid --mount --ipc --uts --cgroup bash -euc '
        mount --bind "$1" "$1"
        cd "$1"
        mount -t proc proc proc
        mount --rbind /dev dev
        mount -t sysfs sysfs sys
        mount -t cgroup2 cgroup2 sys/fs/cgroup
        mount -t tmpfs tmpfs run
        mount -t tmpfs -o size=512m tmpfs var/lib/postgresql
        pivot_root . mnt # a service may not make namespaces of its own below a chroot
        umount --lazy mnt
        shift
        exec "$@"' start "$root" "$@" &>"$root/boot.log" &
    space=$!
    until init=$(pgrep -P "$space") && [ -e "/proc/$init/root/source" ]; do
        if ! kill -0 "$space" 2>/dev/null; then return; fi # process 1 ended
        sleep 0.1
    done
}
inside() {
    nsenter --target "$init" --mount --pid --ipc --uts --cgroup --root env --ignore-environment --chdir=/source \
        PATH=/usr/local/bin:/usr/bin:/usr/sbin HOME=/root DEBIAN_FRONTEND=noninteractive RUNLEVEL=2 PREVLEVEL=N bash -euo pipefail "$@"
}

start /usr/bin/env container=other /sbin/init --log-target=console
# shellcheck disable=SC2016
if ! reason=$(inside -c '
    for _ in {1..20}; do
        state=$(systemctl is-system-running 2>&1 || true)
        if [[ $state =~ ^(starting|running|degraded)$ ]]; then exit; fi
        sleep 1
    done
    echo "$state"
    exit 1'); then
    echo "systemd is not process 1 here: $reason $(tail -n 3 "$root/boot.log")"
    stop
    cp tests/deployment/systemctl "$root/usr/local/bin/"
    start /bin/bash -c 'while true; do sleep 1000 & wait; done' # it reaps
fi
inside tests/deployment/inside.sh
