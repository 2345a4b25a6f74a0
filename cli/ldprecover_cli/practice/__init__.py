"""The practice server: in a thread of this process, with the calls of a demo or of a class."""
