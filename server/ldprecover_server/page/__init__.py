"""The page: its files, and how each is answered; it knows no framework."""

from ldprecover_server.page.page import HEADERS, INDEX, PageFile, files

__all__ = ["HEADERS", "INDEX", "PageFile", "files"]
