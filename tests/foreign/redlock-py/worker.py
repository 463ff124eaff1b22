from redlock import Redlock

from play import play


class Library:
    def __init__(self, ports):
        nodes = [{"host": "127.0.0.1", "port": port} for port in ports]
        self.locks = Redlock(nodes, retry_count=1, retry_delay=0.001)

    def acquire(self, resource, ttl_ms):
        return self.locks.lock(resource, ttl_ms) or None

    def validity_ms(self, lease):
        return lease.validity

    def release(self, lease):
        self.locks.unlock(lease)


play(Library)
