from redlock import Redlock
from redlock.client import RedlockConfig

from play import PATIENT, play


class Library:
    def __init__(self, ports):
        # Its sockets time out after 100 ms unless they are told otherwise.
        timeout = {"socket_timeout": 30} if PATIENT else {}
        config = RedlockConfig(masters=[f"redis://127.0.0.1:{port}" for port in ports], **timeout)
        self.locks = Redlock(config, retry_count=0)

    def acquire(self, resource, ttl_ms):
        return self.locks.acquire(resource, ttl_ms)

    def validity_ms(self, lease):
        return lease.validity

    def extend(self, lease, ttl_ms):
        return self.locks.extend(lease, ttl_ms)

    def release(self, lease):
        self.locks.release(lease)


play(Library)
