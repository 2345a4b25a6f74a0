"""Crafting: the reports that malicious users can make, the search for seeds, and what it yields."""
