"""Group commit: submissions on their way into the storage."""
