"""A round as data: its parameters, its export, merged exports, and the files of its reports."""
