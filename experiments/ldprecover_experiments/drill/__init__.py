"""A drill: a poisoned round that a page starts, watches and scores against the truth.

It mounts a server's application, or passes requests to a running server, and extends the server's
page by a form. The server knows nothing of it.
"""
