"""Recoveries, alarms and certificates: long computations over reports, in worker processes.

This file imports nothing: workers import it, and load only numpy and `ldprecover`.
"""
