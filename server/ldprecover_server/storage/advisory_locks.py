"""Keys of the Postgres advisory locks, in one place because they share the whole database.

Locks with two keys (a class and a number) and locks with one key never conflict with each other.
"""

PROCESS_CLASS = 0x4C44505
"""Class of the session locks on process numbers (0, 1, ...) and of `MAINTENANCE_NUMBER`."""

MAINTENANCE_NUMBER = -1
"""Number in `PROCESS_CLASS` that serialises deletion."""

ROUND_CLASS = 0x4C44506
"""Class of the locks on rounds; the number is the low 31 bits of `rounds.seq`.

Commits share a round's lock, and ending the round takes it exclusively.
"""

MIGRATION_KEY = 0x4C44506
"""Single key that serialises migrations."""
