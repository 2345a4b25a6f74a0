"""Submission keys begin with their round, and take 24 bytes with their digest."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"

_Key = sa.LargeBinary(16).with_variant(postgresql.UUID(), "postgresql")
_Digest = sa.LargeBinary(8).with_variant(sa.BigInteger(), "postgresql")

_POSTGRES = """
INSERT INTO keys (key, digest)
SELECT (lpad(to_hex(round), 8, '0') || encode(substr(key, 1, 12), 'hex'))::uuid,
       ('x' || encode(substr(digest, 1, 8), 'hex'))::bit(64)::bigint
FROM old_keys ORDER BY round, key
"""
_SQLITE = """
INSERT INTO keys (key, digest)
SELECT CAST(:prefix || substr(key, 1, 12) AS BLOB), substr(digest, 1, 8)
FROM old_keys WHERE round = :seq ORDER BY key
"""


def upgrade() -> None:
    connection = op.get_bind()
    op.rename_table("keys", "old_keys")
    if connection.dialect.name == "postgresql":
        op.execute("ALTER INDEX keys_pkey RENAME TO old_keys_pkey")
    op.create_table(
        "keys",
        sa.Column("key", _Key, primary_key=True),
        sa.Column("digest", _Digest, nullable=False),
        sqlite_with_rowid=False,
    )
    if connection.dialect.name == "postgresql":
        op.execute(_POSTGRES)
    else:
        for seq in connection.scalars(sa.text("SELECT seq FROM rounds")).all():
            connection.execute(sa.text(_SQLITE), {"seq": seq, "prefix": seq.to_bytes(4, "big")})
    op.drop_table("old_keys")
    op.execute("UPDATE rounds SET mixed_key = NULL")  # those that are not wholly mixed begin anew
