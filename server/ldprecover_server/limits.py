"""Limits of queues and caches that hold on every machine and for every round."""

QUEUE_REQUESTS = 10_000
"""Submissions that wait for their commit; beyond it, 503. They take a second or two to commit, and
less memory than the bodies may have."""
GROUP_BYTES = 8 << 20
"""Decoded bytes after which a commit takes no further submission. More would not save time: the
cost of a commit is then its bytes."""
SUBMISSION_CELLS = 1 << 31
"""Reports times items of one submission to a round whose reports hash; beyond it, 413. Also the
number after which a commit takes no further submission. Counting them takes 0.2 seconds with numba
and 2.4 with numpy, and no other submission is counted meanwhile. The client's batches are no
larger."""
BODY_SECONDS = 30.0
"""Time for a request body to arrive; beyond it, 408. The largest body needs 4.5 Mbit/s."""
ANONYMOUS_BODY_SECONDS = 10.0
"""The same for a caller without a key, whose body is small."""
READS = 256
"""Calls that wait to read from the database, with and without a key each; beyond it, 503. They take
milliseconds each, so that more would only wait for a database that does not answer."""
ANALYSIS_QUEUE = 32
"""Analyses that wait for a worker process, half of them of callers without a key; beyond it, 503.
More would wait for longer than their callers do."""
ANALYSIS_CACHE_BYTES = 16 << 20
"""Memory of cached results, divided among the processes: one of 100,000 items takes 5 MiB."""
