"""The databases that the service runs on: SQLite and Postgres."""
