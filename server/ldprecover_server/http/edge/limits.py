"""The limits of a connection. `README.md` compares them to those of nginx."""

HEAD_BYTES = 1 << 13
"""Bytes of a request line with its headers."""

TARGET_BYTES = 2000
"""Bytes of a request target: with method and version, a request line has at most 2 KiB."""

MAX_QUERY_FIELDS = 32
"""Fields of a query. Parsing one takes microseconds, and the largest call has 12."""

MAX_COMMAS = 100
"""Commas of a header. Parsing a list takes a microsecond per member."""

MAX_HEADERS = 100
"""Headers and trailers of a request."""

HEAD_SECONDS = 10.0
"""Seconds for a head to arrive; for the first one, from the connection on."""

READ_BYTES = 1 << 14
"""The most bytes of one read, and of waiting data of a request that has not started."""

MAX_SMALL_CHUNKS = 256
CHUNK_BYTES = 1 << 10
"""A body has at most MAX_SMALL_CHUNKS, and one more per CHUNK_BYTES that have arrived. Clients send
chunks of 4 KiB or more."""

UNREAD_BYTES = 1 << 15
"""Response bytes that wait for a client before its connection writes no more."""

UNREAD_SECONDS = 10.0
"""Seconds without a byte read after which a client with unread bytes is cut off."""

COALESCED_BYTES = 1 << 12
"""Longer writes are flushed immediately: one turn of the event loop has no other limit."""

HALF_CLOSED_SECONDS = 5.0
"""Seconds for the responses in progress after the client has closed its sending side."""

LINGER_SECONDS = 5.0
LINGER_BYTES = 32 << 20
"""Seconds and bytes of input to drop after the last response, which a reset would destroy."""

PROGRESS_BYTES = 1 << 14
"""Body bytes that count as progress of their connection. Fewer would let slow senders stay."""

EVICTION_SCAN = 256
"""The oldest connections scanned for an idle one. If there is no idle one, the oldest is closed."""

CHECK_SECONDS = 1.0
"""Seconds between two checks of all connections for timeouts."""
