"""The demo: a poisoned round from end to end."""
