"""The parts that a worker plays, the same for every library written in Python.

A library is an object with `acquire(resource, ttl_ms)`, which tries once and answers what it was
granted or None; `validity_ms(lease)`, None where the library does not say; `release(lease)`; and
`extend(lease, ttl_ms)` where it can.
"""

import json
import os
import socket
import sys
import time

PORTS = [int(port) for port in os.environ["FOREIGN_NODES"].split(",")]
RESOURCE = os.environ["FOREIGN_RESOURCE"]
WHO = os.environ["FOREIGN_WHO"]
TTL_MS = int(os.environ["FOREIGN_TTL_MS"])
WARM_TTL_MS = 10_000
PATIENT = os.environ.get("FOREIGN_PATIENT") == "1"


def say(step, **what):
    print(json.dumps({"step": step, **what}), flush=True)


def told():
    """Waits until the runner says that it goes on."""
    if not sys.stdin.readline():
        sys.exit("the runner is gone")


class Observer:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", int(os.environ["FOREIGN_OBSERVER"])))

    def tell(self, verb, who):
        self.socket.sendall(f"{verb} {RESOURCE} {who}\r\n".encode())
        answer = self.socket.recv(64)
        assert answer.startswith(b"+OK"), answer


def cycle(first, second, observer):
    lease = first.acquire(RESOURCE, TTL_MS)
    if lease is None:
        return say("not acquired")
    say("acquired", validity_ms=first.validity_ms(lease))
    observer.tell("ENTER", "first")
    # Again, since the keys of the first must outlive the release after a refusal.
    for step in ["refused", "refused again"]:
        say(step if second.acquire(RESOURCE, TTL_MS) is None else "granted twice")
    if hasattr(first, "extend"):
        say("extended" if first.extend(lease, 2 * TTL_MS) else "not extended")
    observer.tell("LEAVE", "first")
    first.release(lease)
    say("released")
    lease = second.acquire(RESOURCE, TTL_MS)
    if lease is None:
        return say("not acquired by the second")
    observer.tell("ENTER", "second")
    say("acquired by the second")
    observer.tell("LEAVE", "second")
    second.release(lease)


def warm(library):
    """Has connections and scripts at every node before the faults begin."""
    library.release(library.acquire(f"warm-{WHO}", WARM_TTL_MS))
    say("ready")
    told()


def late(library, observer):
    warm(library)
    began, why = time.monotonic(), None
    try:
        lease = library.acquire(RESOURCE, TTL_MS)
    except Exception as error:
        lease, why = None, repr(error)
    after_ms = int((time.monotonic() - began) * 1000)
    if lease is None:
        return say("late", outcome="fails" if why else "refuses", after_ms=after_ms, why=why)
    say("late", outcome="granted", after_ms=after_ms, validity_ms=library.validity_ms(lease))
    hold(library, lease, observer)


def section(library, observer):
    warm(library)
    lease = library.acquire(RESOURCE, TTL_MS)
    if lease is None:
        return say("refused")
    hold(library, lease, observer)


def hold(library, lease, observer):
    observer.tell("ENTER", WHO)
    say("entered")
    told()
    observer.tell("LEAVE", WHO)
    try:
        library.release(lease)
    except Exception as error:
        say("not released", why=repr(error))
    say("left")


def play(connect):
    """Plays the part that the environment names with libraries that `connect(ports)` makes."""
    part = os.environ["FOREIGN_PART"]
    if part == "cycle":
        cycle(connect(PORTS), connect(PORTS), Observer())
    else:
        {"late": late, "section": section}[part](connect(PORTS), Observer())
