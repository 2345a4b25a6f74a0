"""Recoveries, alarms and suspects: long readings of reports, outside the process that takes
reports.

This file imports nothing: the child processes come through it, and know numpy and `ldprecover`
alone.
"""
