"""Submission keys are stored in 24 bytes on both databases, apart by round."""

import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import open_round

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


@pytest.mark.postgres
def test_key_row_and_index_entry_have_no_padding(storage: Storage) -> None:
    """24 bytes of header and 24 of content in the table; 8 and 16 in the index."""
    seq = open_round(storage)
    with storage.database.write() as connection:
        keys = {encode_key(seq, i.to_bytes(12, "big")): bytes(8) for i in range(4000)}
        storage.database.insert_submission_keys(connection, keys)
        connection.exec_driver_sql("CREATE TEMP TABLE packed ON COMMIT DROP AS SELECT * FROM keys")
        connection.exec_driver_sql(
            "CREATE UNIQUE INDEX of_packed ON packed (key) WITH (fillfactor = 100)"
        )
        on_first_page = "SELECT count(*) FROM packed WHERE ctid < '(1,0)'"
        assert connection.exec_driver_sql(on_first_page).scalar_one() == (8192 - 24) // (48 + 4)
        rows = connection.exec_driver_sql("SELECT count(*) FROM packed").scalar_one()
        pages = connection.exec_driver_sql(
            "SELECT pg_relation_size('of_packed') / 8192"
        ).scalar_one()
        assert (
            pages <= rows // ((8192 - 24 - 16) // (24 + 4)) + 3
        )  # with the root and a page about it all
