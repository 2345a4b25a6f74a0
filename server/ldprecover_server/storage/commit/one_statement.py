"""The usual commit in one statement, on either database; whatever stands in its way undoes it
whole.

Both do what `Commit` does in its longer way: the round is open, no key is known, and the process's
tally is as it left it; then keys, segment and tally are written. As it left it: with as many
reports, and under the token that the process drew. Another that has its number by mistake, or after
a failover that lost what was committed last, takes the row in the longer way and leaves its own
token there: so equal numbers of reports are not taken for equal counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class AtOnce:
    """What a batch would store in the usual case: an open round, and keys that no one has used.

    The tally of `process` is written over `n_before` reports that the process with this `token`
    wrote, and nothing is stored where it has another number, or another wrote it. `generation` is
    that of the database's connections.
    """

    round: int
    process: int
    token: bytes
    generation: int
    keys: Mapping[bytes, bytes]  # as they are stored, in order, with their digests
    hour: int
    n: int
    data: bytes
    n_before: int
    n_after: int
    counts: bytes


# The usual commit is one statement, which begins and ends its transaction itself: so all of it is
# one step without the interpreter's lock. Whatever stands in its way aborts it whole. Made for a
# connection when it first commits so.
SQLITE_MADE = (
    """
CREATE TEMP VIEW IF NOT EXISTS at_once (
    round, process, token, many, keys, digests, n_before, n_after, counts, hour, n, data
) AS SELECT 0, 0, x'', 0, x'', x'', 0, 0, x'', 0, 0, x''
""",
    """
CREATE TEMP TRIGGER IF NOT EXISTS store_at_once INSTEAD OF INSERT ON at_once BEGIN
    SELECT RAISE(ABORT, 'not open')
    WHERE NOT EXISTS (SELECT 1 FROM rounds WHERE seq = NEW.round AND state = 'open');
    INSERT INTO keys (key, digest)
    SELECT substr(NEW.keys, 16 * i + 1, 16), substr(NEW.digests, 8 * i + 1, 8) FROM (
        WITH RECURSIVE each (i) AS (
            SELECT 0 UNION ALL SELECT i + 1 FROM each WHERE i + 1 < NEW.many
        ) SELECT i FROM each
    );
    UPDATE tallies SET n = NEW.n_after, counts = NEW.counts
    WHERE round = NEW.round AND process = NEW.process AND n = NEW.n_before AND token = NEW.token;
    SELECT RAISE(ABORT, 'another tally') WHERE changes() <> 1;
    INSERT INTO segments (round, hour, n, data)
    SELECT NEW.round, NEW.hour, NEW.n, NEW.data FROM rounds
    WHERE seq = NEW.round AND retention IS NOT 0;
END
""",
)
SQLITE = "INSERT INTO at_once VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

# The usual commit in one statement, sent once and committed by itself: for 16 keys 0.85 ms, against
# 1.9 for one after the other. The LIMIT makes each key a look into the index, however small the
# table was when the plan was made. Should another process take a key or the tally at this very
# moment, the division fails and undoes all of it. So does a round that is closed meanwhile: see
# `end_round`. Who waits to close it is let by.
ROUND_LOCK = 79971590  # the class of our advisory locks on rounds, which have the numbers of theirs
POSTGRES = """
WITH open AS MATERIALIZED (
    SELECT retention FROM rounds WHERE seq = %(round)s AND state = 'open'
    AND pg_try_advisory_xact_lock_shared(79971590, (%(round)s & 2147483647)::int)
),
fresh AS MATERIALIZED (
    SELECT retention FROM open
    WHERE EXISTS (
        SELECT FROM tallies
        WHERE round = %(round)s AND process = %(process)s AND n = %(n_before)s AND token = %(token)b
    )
    AND NOT EXISTS (
        SELECT FROM unnest(%(keys)b::uuid[]) AS k,
        LATERAL (SELECT FROM keys WHERE key = k LIMIT 1) AS there
    )
),
stored AS (
    INSERT INTO keys (key, digest)
    SELECT k, d FROM fresh, unnest(%(keys)b::uuid[], %(digests)b::bigint[]) AS wanted (k, d)
    ON CONFLICT DO NOTHING RETURNING 1
),
segment AS (
    INSERT INTO segments (round, hour, n, data)
    SELECT %(round)s, %(hour)s, %(n)s, %(data)b FROM fresh WHERE retention IS DISTINCT FROM 0
),
tally AS (
    UPDATE tallies SET n = %(n_after)s, counts = %(counts)b FROM fresh
    WHERE round = %(round)s AND process = %(process)s AND n = %(n_before)s AND token = %(token)b
    RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT FROM fresh)
    THEN 1 / (
        ((SELECT count(*) FROM stored), (SELECT count(*) FROM tally)) = (%(submissions)s, 1)
    )::int
    ELSE 0 END
"""
DIVISION_BY_ZERO = "22012"
