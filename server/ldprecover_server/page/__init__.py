"""The files of the web page and their responses, independent of a web framework."""

from ldprecover_server.page.page import HEADERS, INDEX, PageFile, files

__all__ = ["HEADERS", "INDEX", "PageFile", "files"]
