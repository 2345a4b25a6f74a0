"""What malicious users can make of reports: the search for seeds, and what it finds."""
