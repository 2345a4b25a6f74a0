"""`round`: rounds on a server."""
