"""The HTTP interface, declared once for server and clients: messages, paths and problem types.

`base` has the rules of every message; the other modules are the messages by topic. Nothing here
knows an HTTP library.
"""
