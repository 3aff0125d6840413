"""Which coordinator to ask: a list of addresses, and the hint a follower gives."""

from google.rpc import error_details_pb2, status_pb2


def reason_of(error):
    """The stable reason and the metadata of a failed call, such as NOT_LEADER or NOT_OWNER."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    return info.reason, dict(info.metadata)
    return "", {}


class Coordinators:
    """The next address to ask: the leader if it is known, else one after the other."""

    def __init__(self, addresses):
        self.addresses = addresses.split(",")
        self.turn = 0
        self.leader = self.addresses[0]

    def failed(self, error=None):
        """Goes to the leader that a follower named, or to the next address. True: named."""
        _, facts = reason_of(error) if error is not None else ("", {})
        hint = facts.get("leader_address")
        named = bool(hint) and hint != self.leader
        if not named:
            self.turn += 1
            hint = self.addresses[self.turn % len(self.addresses)]
        self.leader = hint
        return named
