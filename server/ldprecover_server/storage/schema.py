"""The tables, for SQLite and Postgres alike.

No column here links a person to a report: submission keys hold neither time nor position nor
segment, and a segment holds reports of a whole commit, shuffled, with the hour. What the databases
keep beside the columns (row versions, places in files) does link the two until the round is closed
and mixed: see `mixing`.
"""

import sqlalchemy as sa

from ldprecover_server.storage.key_encoding import Digest, Key

metadata = sa.MetaData()

# SQLite gives ids by itself only to a column of exactly INTEGER.
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _round_column(**options: object) -> sa.Column[int]:
    return sa.Column("round", _Id, sa.ForeignKey("rounds.seq"), nullable=False, **options)  # type: ignore[arg-type]


rounds = sa.Table(
    "rounds",
    metadata,
    sa.Column("seq", _Id, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(32), nullable=False, unique=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("protocol", sa.String(16), nullable=False),
    sa.Column("epsilon", sa.Double, nullable=False),
    sa.Column(
        "parameter", sa.Integer
    ),  # the protocol's own, such as a hash range; null where it has none
    sa.Column(
        "given_seeds", sa.Integer
    ),  # of how many public seeds each ticket picks one; null for none
    sa.Column("items", sa.LargeBinary, nullable=False),  # JSON array of the labels, in UTF-8
    sa.Column(
        "canaries", sa.LargeBinary
    ),  # JSON array of the indices of items that nobody holds; null for none
    sa.Column("quarantine", sa.Boolean, nullable=False),  # whether reports are set aside
    sa.Column("access", sa.String(8), nullable=False),  # who may submit: open, key, ticket
    sa.Column("read_access", sa.String(8), nullable=False),  # who may read: public, key
    sa.Column("retention", sa.Integer),  # hours that segments are kept; null for ever, 0 not at all
    sa.Column(
        "series", sa.String(64), index=True
    ),  # rounds over the same items, for comparison; or none
    sa.Column("state", sa.String(8), nullable=False),  # open, closed; gone: deleted, rows are left
    sa.Column("opened_at", sa.String(32), nullable=False),
    sa.Column("closed_at", sa.String(32)),
    sa.Column(
        "purged", sa.BigInteger, nullable=False, server_default="0"
    ),  # reports that retention has let go
    # How often its segments were deleted or rewrites: who reads them finds out that they changed.
    sa.Column("rewrites", sa.Integer, nullable=False, server_default="0"),
    sa.Column(
        "unlinked", sa.Boolean, nullable=False, server_default=sa.false()
    ),  # once closed: see `mixing`
    sa.Column("unlinked_key", sa.LargeBinary(16)),  # keys up to this one are mixed
    sa.Column(
        "unlinked_segment", sa.BigInteger
    ),  # segments up to this one are not mixed, later ones are
    # False while reports may have to be set aside by their seeds, which is known once it is closed:
    # see `screening`.
    sa.Column("filtered", sa.Boolean, nullable=False),
    sa.Column(
        "recurring_seeds", sa.LargeBinary
    ),  # <u4, the seeds that come too often, once they are known until all is done
    sa.Column(
        "filtered_segment", sa.BigInteger
    ),  # segments up to this one have no report left under such a seed
    sa.Column(
        "seeds_quarantined", sa.BigInteger, nullable=False, server_default="0"
    ),  # reports set aside by their seed
    sqlite_autoincrement=True,  # the current round is the one opened last: seq is never given twice
)

# Begins with its round, which has no column: see `stored_keys`.
submission_keys = sa.Table(
    "keys",
    metadata,
    sa.Column("key", Key, primary_key=True),
    sa.Column("digest", Digest, nullable=False),
    sqlite_with_rowid=False,  # no hidden row number that tells the order of arrival
)

segments = sa.Table(
    "segments",
    metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    # No foreign key, which would lock the round: a round goes after its segments.
    sa.Column("round", _Id, nullable=False),
    sa.Column("hour", sa.Integer, nullable=False),  # hours since the epoch
    sa.Column("n", sa.Integer, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),  # packed reports
    sa.Index("ix_segments_round_id", "round", "id"),
)

# Reports that are set aside: accepted, and counted nowhere else. They are not mixed: honest ones
# are hardly ever among them.
quarantine = sa.Table(
    "quarantine",
    metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    _round_column(),
    sa.Column("reason", sa.String(4), nullable=False),  # size, seed
    sa.Column("hour", sa.Integer, nullable=False),  # as their segment had it, or would have
    sa.Column("n", sa.Integer, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),  # packed reports
    sa.Index("ix_quarantine_round_id", "round", "id"),
)

tallies = sa.Table(
    "tallies",
    metadata,
    _round_column(primary_key=True),
    sa.Column("process", sa.Integer, primary_key=True),
    sa.Column("n", sa.BigInteger, nullable=False),
    sa.Column(
        "counts", sa.LargeBinary, nullable=False
    ),  # the tally's summary: see `stored_tallies`
    sa.Column(
        "token", sa.LargeBinary(16)
    ),  # of the process that wrote it last; processes draw theirs at random
    sa.Column(
        "quarantined", sa.BigInteger, nullable=False, server_default="0"
    ),  # reports set aside by their size
)

rejections = sa.Table(
    "rejections",
    metadata,
    _round_column(primary_key=True),
    sa.Column("process", sa.Integer, primary_key=True),
    sa.Column("reason", sa.String(40), primary_key=True),  # a problem's slug, or `duplicate`
    sa.Column("n", sa.BigInteger, nullable=False),
)

access_keys = sa.Table(
    "access_keys",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("scope", sa.String(8), nullable=False),  # admin, analyst, report
    sa.Column("hash", sa.LargeBinary(32), nullable=False, unique=True),  # SHA-256 of the key
    sa.Column("created_at", sa.String(32), nullable=False),
    sa.Column("revoked_at", sa.String(32)),
)

# The one secret that is not hashed: tickets are signed with keys derived from it.
secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("name", sa.String(16), primary_key=True),
    sa.Column("value", sa.LargeBinary(32), nullable=False),
)

# Analyses that a caller reads later. They go with their round.
jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),  # random: who knows it was told
    sa.Column("round", _Id, sa.ForeignKey("rounds.seq", ondelete="CASCADE"), nullable=False),
    sa.Column("keyed", sa.Boolean, nullable=False),  # asked for with a key
    sa.Column("state", sa.String(9), nullable=False),  # queued, running, done, failed, cancelled
    sa.Column("progress", sa.Double, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),  # seconds since the epoch
    sa.Column(
        "heartbeat", sa.BigInteger, nullable=False
    ),  # when its process last said that it works on it
    sa.Column("result", sa.LargeBinary),
    sa.Column("error", sa.Text),  # JSON: the refusal's class and its text
)

# Reports that were written as files, of rounds whose retention ends. The files outlive their round,
# and so does the row.
datasets = sa.Table(
    "datasets",
    metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    sa.Column("round", sa.String(32), nullable=False),  # its id
    sa.Column("url", sa.Text, nullable=False),  # of the folder
    sa.Column("work", sa.Text, nullable=False),  # the folder of what is on its way
    sa.Column("retention", sa.Integer, nullable=False),  # hours that reports are kept
    sa.Column(
        "first", sa.Integer, nullable=False
    ),  # the earliest hour that is left, since the epoch
    sa.Column("last", sa.Integer, nullable=False),  # the latest hour
)
