"""Submission keys are stored in 24 bytes on both databases, apart by round."""

import sqlalchemy as sa

from ldprecover_server.storage import Storage
from ldprecover_server.storage.encoding import encode_digest, encode_key, in_round
from ldprecover_server.storage.schema import submission_keys

EDGES = [bytes(16), bytes(11) + b"\1", b"\x7f" + 15 * b"\xff", b"\x80" + bytes(15), 16 * b"\xff"]


def test_encoded_keys_keep_order_and_round(storage: Storage) -> None:
    """First and last possible hashes, in adjacent rounds, with digests of either sign."""
    before, seq, after = 2**24 - 1, 2**24, 2**24 + 1
    rows = [
        (encode_key(round, key), encode_digest(key))
        for round in (before, seq, after)
        for key in EDGES
    ]
    with storage.database.write() as connection:
        assert storage.database.insert_submission_keys(connection, dict(rows)) == {
            key for key, _ in rows
        }
    query = sa.select(submission_keys).order_by(submission_keys.c.key)
    with storage.database.read() as connection:
        assert storage.database.find_submission_keys(connection, [key for key, _ in rows]) == dict(
            rows
        )
        assert storage.database.find_submission_keys(connection, []) == {}
        for round in (before, seq, after):
            of_round = connection.execute(query.where(in_round(submission_keys.c.key, round)))
            assert [tuple(row) for row in of_round] == [
                (round.to_bytes(4, "big") + key[:12], key[:8]) for key in EDGES
            ]
