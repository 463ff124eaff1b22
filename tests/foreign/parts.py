"""The parts that a library plays: what is done, and what must come of it."""

import contextlib

from child import Failure
from fleet import Fleet, Worker, ask
from library import HERE
from tap import Tap

RESOURCE = "res"
TTL_MS = 10_000
# As in late.toml: the replies take longer than the lock lives.
LATE_TTL_MS = 200


class Parts:
    """The parts of one library before masters that `serve` serves."""

    def __init__(self, library, serve):
        self.library, self.serve = library, serve

    def play(self):
        """All that the library can; the row of it."""
        it = self.library
        sends = self.cycle()
        late = self.late()
        if it.late_if_patient:
            late += f"; told to wait for 30 s, still {self.late(patient=True)}"
        clash = it.no_clash
        if not clash:
            self.steady()
            clash = self.clash()
        cells = [it.title, f"{it.language}, {it.speaks_by}", sends, it.reply_timeout, late, clash]
        return f"| {' | '.join(cells)} |"

    def cycle(self):
        """The steps of a lock's life; what is sent for them."""
        # A majority of the masters is one of those that the library knows.
        names = ", ".join(f'"{name}"' for name in "ABCDE"[: self.library.nodes])
        with self.fleet("cycle", "--set", f"cluster.nodes=[{names}]") as fleet:
            fleet.start()
            with Tap(fleet.ports[0]) as tap:
                ports = [tap.port, *fleet.ports[1 : self.library.nodes]]
                with self.worker("cycle", ports, fleet) as worker:
                    steps = [step["step"] for step in worker.rest()]
            extended = ["extended"] if self.library.extends else []
            wanted = ["acquired", "refused", "refused again", *extended]
            wanted += ["released", "acquired by the second"]
            if steps != wanted:
                raise Failure(f"{steps}, not {wanted}")
            fleet.judge()
        return ", ".join(f"`{command}`" for command in tap.commands)

    def late(self, patient=False):
        """Every reply takes longer than the lock lives; what the library makes of them."""
        with self.fleet("late") as fleet:
            ports = fleet.ports[: self.library.nodes]
            more = {"FOREIGN_TTL_MS": str(LATE_TTL_MS), "FOREIGN_PATIENT": str(int(patient))}
            with self.worker("late", ports, fleet, **more) as worker:
                worker.expect("ready")
                fleet.start()
                fleet.until("late-replies", "begun")
                worker.go_on()
                step = worker.expect("late")
                outcome, says = step["outcome"], ""
                if outcome == "granted":
                    worker.expect("entered")
                    outcome, says = self.granted(step, ports), validity(step["validity_ms"])
                    worker.go_on()
                worker.rest()
            # What the observer makes of it does not matter here.
            fleet.end()
            wanted = self.library.late_if_patient if patient else self.library.late
            if outcome != wanted:
                raise Failure(f"{outcome}, not {wanted}: {step}")
        return outcome + says

    def granted(self, step, ports):
        """What a lock is that was granted by late replies."""
        alive = [ask(port, "EXISTS", self.key) for port in ports].count(":1")
        if alive <= len(ports) // 2 and step["after_ms"] >= LATE_TTL_MS:
            return "**returns an expired lock**"
        return f"returns a lock that {alive} nodes have"

    def clash(self):
        """C's clock jumps, C forgets its key, two are inside: the observer must know why."""
        with self.fleet("clash") as fleet, self.section("c1", fleet) as c1, self.section("c2", fleet) as c2:
            self.enters_on_three(c1, [c1, c2], fleet)
            if not fleet.has("jump", "waiting"):
                raise Failure("this machine is too slow, the clock jumped before it was to")
            fleet.until("jump", "over")
            self.free_the_other_two(fleet)
            c2.go_on()
            c2.expect("entered")
            for worker in [c1, c2]:
                worker.go_on()
                worker.rest()
            said = fleet.judge()
            if "clock(C)" not in said:
                raise Failure(f"the observer does not blame the clock of C: {said}")
        return "two inside, `clock(C)` blamed"

    def steady(self):
        """The same, and no clock jumps: the second is refused, and nothing is wrong."""
        with self.fleet("steady") as fleet, self.section("c1", fleet) as c1, self.section("c2", fleet) as c2:
            self.enters_on_three(c1, [c1, c2], fleet)
            self.free_the_other_two(fleet)
            c2.go_on()
            c2.expect("refused")
            c2.rest()
            c1.go_on()
            c1.rest()
            fleet.judge()

    def enters_on_three(self, worker, workers, fleet):
        """Its lock is on A, B and C: D and E have somebody else's key."""
        for each in workers:
            each.expect("ready")
        fleet.start()
        for port in fleet.ports[3:]:
            if ask(port, "SET", self.key, "another", "NX", "PX", "60000") != "+OK":
                raise Failure(f"the key {self.key} is there already")
        worker.go_on()
        worker.expect("entered")

    def free_the_other_two(self, fleet):
        # With its value, since a DEL over a connection of its own would be of yet another client.
        for port in fleet.ports[3:]:
            ask(port, "EVAL", "return redis.call('DEL', KEYS[1])", "1", self.key, "another")

    @property
    def key(self):
        return self.library.prefix + RESOURCE

    @contextlib.contextmanager
    def fleet(self, part, *more):
        """The masters of a part, which is named by what fails in it."""
        reports = self.library.home / "reports" / part
        try:
            with Fleet([*self.serve, *more], HERE / f"{part}.toml", reports) as fleet:
                yield fleet
        except Failure as failure:
            raise Failure(f"{part}: {failure}") from failure

    def section(self, who, fleet):
        return self.worker("section", fleet.ports, fleet, FOREIGN_WHO=who)

    def worker(self, part, ports, fleet, **more):
        environment = {
            "FOREIGN_PART": part,
            "FOREIGN_NODES": ",".join(map(str, ports)),
            "FOREIGN_OBSERVER": str(fleet.observer),
            "FOREIGN_RESOURCE": RESOURCE,
            "FOREIGN_TTL_MS": str(TTL_MS),
            "FOREIGN_WHO": "c1",
        }
        return Worker(self.library.command, {**self.library.environment, **environment, **more})


def validity(validity_ms):
    if validity_ms is None:
        return " and says nothing of how long it is valid"
    return " and says that it is over" if validity_ms <= 0 else " and says that it is valid"
