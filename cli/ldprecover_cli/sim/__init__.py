"""`sim`: simulated users."""
