"""Processes that end when the runner does, whatever ends it."""

import os
import signal
import subprocess
import threading

running, guard, over = set(), threading.Lock(), threading.Event()


class Failure(Exception):
    """What came out is not what is expected."""


def spawn(command, **how):
    """A process in a group of its own, so that what it starts ends with it."""
    with guard:
        if over.is_set():
            raise Failure("the runner was told to end")
        process = subprocess.Popen(command, start_new_session=True, **how)
        running.add(process)
    return process


def end(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    with guard:
        running.discard(process)


def end_all():
    """From now on nothing starts any more."""
    over.set()
    with guard:
        left = list(running)
    for process in left:
        end(process)
