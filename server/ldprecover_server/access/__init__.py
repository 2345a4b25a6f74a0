"""Who may do what: access keys, tickets, and how fast a key may bring reports."""
