"""The demo: a poisoned round from end to end, on a separate server."""
