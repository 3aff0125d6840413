"""What a data node is told to run, what runs, and what it has to acknowledge. No network here."""

from quorate.v1 import node_pb2


class Assignments:
    def __init__(self):
        self.highest = {}  # name -> (term, op); outlives sessions: what is lower is of the past
        self.clear()

    def clear(self):
        self.wanted, self.pieces = None, {}  # name -> directive
        self.running = {}  # name -> [term, count of what was consumed]
        self.refused = set()  # (name, term) of claims that the coordinator called over
        self.acks = {}  # name -> acknowledgement that is not recorded yet: said in every report

    def drained(self):
        return self.wanted == {} and not self.running and not self.acks

    def runs(self):
        return [node_pb2.Running(channel=name, term=run[0]) for name, run in self.running.items()]

    def take(self, piece):
        """A piece of a full set or of a delta; it counts with the last piece."""
        self.pieces.update({directive.channel: directive for directive in piece.set})
        self.pieces.update(dict.fromkeys(piece.gone))
        if not piece.last_chunk:
            return
        before = {} if piece.full or self.wanted is None else self.wanted
        after = before | self.pieces
        self.wanted, self.pieces = {name: one for name, one in after.items() if one}, {}
        for name in [name for name in self.running if name not in self.wanted]:
            print(f"stopped {name} t{self.running.pop(name)[0]}", flush=True)
        for directive in self.wanted.values():
            self.obey(directive)

    def obey(self, want):
        name, term = want.channel, want.term
        if (term, want.op) <= self.highest.get(name, (0, 0)):
            return  # done already, or of the past
        self.highest[name] = (term, want.op)
        run = self.running.pop(name, None)  # a lower term stops before a higher one starts
        if want.kind == node_pb2.DIRECTIVE_KIND_WATCH:
            count = int.from_bytes(want.positions, "big") if len(want.positions) == 8 else 0
            self.running[name] = [term, count]
            print(f"watching {name} t{term}", flush=True)
        elif run:
            print(f"released {name} t{term}", flush=True)
        self.acks[name] = node_pb2.Ack(
            channel=name, term=term, op=want.op, result=node_pb2.ACK_RESULT_OK
        )

    def settle(self, verdict):
        """The coordinator recorded an acknowledgement, or calls it stale: either is final."""
        ack = self.acks.get(verdict.channel)
        if ack and (ack.term, ack.op) == (verdict.term, verdict.op) and verdict.verdict:
            print(f"recorded {ack.channel} t{ack.term}", flush=True)
            del self.acks[verdict.channel]
