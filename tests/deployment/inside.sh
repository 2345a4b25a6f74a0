#!/bin/bash
# Follows docs/how-to/deploying.md on the machine that tests/deployment/run.sh makes: runs the page's own commands, kills
# each part in each state, and restores a backup. All must be back within a minute.
set -euo pipefail
url=https://ldp.example.org
postgres=postgresql@15-main

block() { # runs the commands of the page's block of this number
    bash -euxc "$(awk -v number="$1" '
        /^```sh$/ { count++; shown = 1; next }
        /^```$/ { shown = 0 }
        shown && count == number' docs/how-to/deploying.md)"
}
call() { # METHOD PATH [OPTION...]: the body of an answer; it fails if the status is an error
    curl --silent --show-error --fail --max-time 10 --request "$1" "$url$2" "${@:3}"
}
count() { call GET /rounds/test | sed 's/.*"n":\([0-9]*\).*/\1/'; }
report() { # one more report, which is sent until it is answered
    local began=$SECONDS
    sent=$((${sent-0} + 1))
    for _ in {1..60}; do
        if call POST /rounds/test/reports --header "Content-Type: application/json" \
            --header "Idempotency-Key: $sent" --data '{"reports":[1]}' &>/dev/null; then
            echo "back $((SECONDS - began)) s after: $*"
            return
        fi
        sleep 1
    done
    echo "not back within a minute after: $*"
    return 1
}
main() { systemctl show --property=MainPID --value "$1"; }
kill_part() { # PART, unless it is about to start
    local pids
    case $1 in
        process) pids=$(pgrep --parent "$(main ldprecover)" --full spawn_main | head -n 1) ;;
        processes) pids=$(pgrep --parent "$(main ldprecover)") ;;
        supervisor) pids=$(main ldprecover) ;;
        nginx) pids=$(main nginx) ;;
        worker) pids=$(pgrep --parent "$(main nginx)" | head -n 1) ;;
        postgres) pids=$(main $postgres) ;;
    esac || true
    for pid in $pids; do
        if [ "$pid" != 0 ]; then kill -9 "$pid"; fi
    done
}

apt-get update -qq
block 1
block 2
systemd-analyze verify --man=no ldprecover.service nginx.service $postgres.service
if [ ! -d /run/systemd/system ]; then systemctl start $postgres; fi # as after a start of the machine

source /etc/ldprecover/environment
for _ in {1..60}; do if call GET /healthz &>/dev/null; then break; fi; sleep 1; done
call POST /rounds --header "Authorization: Bearer $LDPRECOVER_ADMIN_KEY" --header "Content-Type: application/json" \
    --data '{"name":"test","protocol":"grr","epsilon":1,"domain_size":4}' >/dev/null
report "the start"
certbot certonly --webroot --webroot-path /var/www/html --domain ldp.example.org --deploy-hook 'systemctl reload nginx'
test "$(curl --silent --output /dev/null --write-out '%{redirect_url}' http://ldp.example.org/x)" = $url/x
shown='%{http_version} %header{strict-transport-security} %{http_code}'
test "$(curl --silent --output /dev/null --write-out "$shown" $url/metrics)" = "2 max-age=63072000 403"
call GET / --tlsv1.3 >/dev/null
call GET / --tls-max 1.2 >/dev/null
for address in http://127.0.0.1 https://127.0.0.1 "$url --tls-max 1.1"; do
    # shellcheck disable=SC2086  # words
    if curl --silent --insecure $address; then echo "$address is answered"; exit 1; fi
done

for part in process processes supervisor nginx worker postgres; do
    kill_part $part
    report "$part"
done
for part in process processes supervisor nginx worker; do
    systemctl stop $postgres
    kill_part $part
    sleep 3
    systemctl start $postgres
    report "$part without database"
done
for part in process supervisor nginx postgres; do
    kill_part postgres
    sleep 1
    kill_part $part
    report "$part while Postgres starts"
done
for part in process supervisor postgres; do
    dd if=/dev/zero of=/var/lib/postgresql/full bs=1M status=none || true
    kill_part $part
    sleep 3
    rm /var/lib/postgresql/full
    report "$part on a full disk"
done
test "$(count)" = "$sent"
echo "$sent reports were answered and are counted, each within a minute after the part before it was killed."

block 3 # the backup
before=$sent
report "the backup"
block 4 # and its return
report "the restore"
test "$(count)" = $((before + 1))
echo "The backup has the $before reports that were answered before it."
