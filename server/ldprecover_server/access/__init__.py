"""Access control: keys, tickets and rate limits."""
