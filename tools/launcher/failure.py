"""The two kinds of failure of a verb. main.py prints them as one line; nothing else in the launcher
exits.
"""


class Failure(Exception):
    """The environment failed. The message says what, where and the fix; exit code 1."""


class UsageError(Exception):
    """The command line is wrong. One line; exit code 2."""
