"""What can go wrong in an experiment beside parameters outside their range and data that cannot be
read.
"""


class ExperimentError(Exception):
    """A file, a package or a server of the experiment's own fails; the message says all."""
