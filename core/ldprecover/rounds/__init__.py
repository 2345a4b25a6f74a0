"""A round as data: its parameters and its export."""
