"""`admin`: the server's database, its keys and its cluster."""
