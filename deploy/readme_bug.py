"""The bug that the README of `init` shows: a release that does not compare the value."""

BUG = "RELEASE = \"return redis.call('DEL', KEYS[1])\"\n"


def plant(worker):
    """Plants the bug in the worker for Python."""
    lines = worker.read_text().splitlines(keepends=True)
    worker.write_text("".join(BUG if line.startswith("RELEASE = ") else line for line in lines))
