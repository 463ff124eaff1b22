"""A worker for `redlock-sim drive`: locks with a small Redlock, and reports to the observer.

Python's standard library is enough. To judge your own client, replace the class `Redlock` with calls to
it; keep `Observer` and `main`.
"""

import os
import random
import secrets
import socket
import sys
import time

CLIENT = os.environ["DRIVE_CLIENT"]
NODES = [node.rsplit(":", 1) for node in os.environ["DRIVE_NODES"].split(",")]
OBSERVER = os.environ["DRIVE_OBSERVER"].rsplit(":", 1)
RESOURCE = os.environ["DRIVE_RESOURCE"]
TTL_MS = int(os.environ["DRIVE_TTL_MS"])

ROUNDS = 2
# Time in the critical section, a third of the lease.
HOLD_S = TTL_MS / 1000 / 3
# Time for the replies of all nodes, much less than the lease.
REPLIES_S = TTL_MS / 1000 / 10
# Time for one acquisition with all its attempts.
PATIENCE_S = 20

# Deletes the key only if it is ours: after our lease it may be another client's.
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


def encoded(*words):
    """A request in RESP."""
    parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in (str(word).encode() for word in words)]
    return b"*%d\r\n" % len(parts) + b"".join(parts)


class Node:
    """A connection to one node, dialled again after each failure."""

    def __init__(self, host, port):
        self.address = (host, int(port))
        self.stream = None
        self.introduced = False

    def send(self, *words):
        """Sends a request; True if it was sent."""
        try:
            if self.stream is None:
                self.stream = socket.create_connection(self.address, timeout=REPLIES_S)
                # The name tells the masters whose connection it is.
                self.stream.sendall(encoded("CLIENT", "SETNAME", CLIENT))
                self.introduced = False
            self.stream.sendall(encoded(*words))
            return True
        except OSError:
            self.close()
            return False

    def reply(self, until):
        """The reply to the request: its first line; None if it does not come by `until`."""
        try:
            if not self.introduced:
                self.line(until)
                self.introduced = True
            return self.line(until)
        except OSError:
            # A reply that still comes would be taken for the next one.
            self.close()
            return None

    def line(self, until):
        text = b""
        while not text.endswith(b"\r\n"):
            self.stream.settimeout(max(0.001, until - time.monotonic()))
            byte = self.stream.recv(1)
            if not byte:
                raise ConnectionError("closed")
            text += byte
        return text.strip().decode()

    def close(self):
        if self.stream is not None:
            self.stream.close()
        self.stream = None


class Redlock:
    """The lock: a majority of the nodes, all asked at once."""

    def __init__(self):
        self.nodes = [Node(host, port) for host, port in NODES]

    def ask(self, *words):
        """The replies of all nodes; None for a node that gives none in time."""
        until = time.monotonic() + REPLIES_S
        sent = [node for node in self.nodes if node.send(*words)]
        return [node.reply(until) for node in sent]

    def acquire(self):
        """One attempt; its token if the lock is ours."""
        token = secrets.token_hex(20)
        began = time.monotonic()
        replies = self.ask("SET", RESOURCE, token, "NX", "PX", TTL_MS)
        # The time that passed counts against the lease; a hundredth and 2 ms are for clock drift.
        left_s = TTL_MS / 1000 * 0.99 - 0.002 - (time.monotonic() - began)
        if replies.count("+OK") > len(self.nodes) // 2 and left_s > 0:
            return token
        self.release(token)
        return None

    def release(self, token):
        self.ask("EVAL", RELEASE, 1, RESOURCE, token)


class Observer:
    """Learns when this worker enters and leaves its critical section."""

    def __init__(self):
        host, port = OBSERVER
        self.stream = socket.create_connection((host, int(port)), timeout=10)
        self.replies = self.stream.makefile("rb")

    def tell(self, *words):
        self.stream.sendall(encoded(*words))
        reply = self.replies.readline().decode().strip()
        if reply != "+OK":
            sys.exit(f"the observer refuses {' '.join(words)}: {reply}")


def acquired(redlock):
    """Attempts until the lock is ours."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        token = redlock.acquire()
        if token is not None:
            return token
        time.sleep(random.uniform(0.01, 0.1))
    sys.exit(f"no lock within {PATIENCE_S} s")


def main():
    redlock, observer = Redlock(), Observer()
    for _ in range(ROUNDS):
        token = acquired(redlock)
        observer.tell("ENTER", RESOURCE, CLIENT, token)
        time.sleep(HOLD_S)
        observer.tell("LEAVE", RESOURCE, CLIENT)
        redlock.release(token)


main()
