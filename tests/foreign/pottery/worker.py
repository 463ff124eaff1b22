from pottery import Redlock
from redis import Redis

from play import play


class Library:
    def __init__(self, ports):
        self.masters = {Redis(host="127.0.0.1", port=port) for port in ports}

    def acquire(self, resource, ttl_ms):
        lock = Redlock(key=resource, masters=self.masters, auto_release_time=ttl_ms / 1000)
        return lock if lock.acquire(blocking=False) else None

    def validity_ms(self, lease):
        """`acquire` answers a bool; what `locked` answers is asked of the nodes again."""
        return None

    def extend(self, lease, ttl_ms):
        """Raises unless it extended; by the lock's own time, it takes no other."""
        lease.extend()
        return True

    def release(self, lease):
        lease.release()


play(Library)
