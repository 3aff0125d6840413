"""An operator of Quorate on grpcio: announce channels, list them, explain one, drain a worker.

    python operator_tool.py --coordinators 127.0.0.1:7420 watch by-dev_0_1v0 --collection 1
"""

import argparse
import secrets
import sys
import time

import grpc
from quorate.v1 import channel_pb2, channel_pb2_grpc, common_pb2, node_pb2, node_pb2_grpc

from leader import Coordinators, reason_of

DEADLINE = 10.0  # seconds for one call with all its attempts
LATER = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class Operator:
    def __init__(self, addresses):
        self.coordinators = Coordinators(addresses)

    def call(self, stub, method, request):
        """Asks until somebody answers. The request, and so its id, is the same each time."""
        until = time.monotonic() + DEADLINE
        while True:
            with grpc.insecure_channel(self.coordinators.leader) as channel:
                try:
                    return getattr(stub(channel), method)(request, timeout=2.0)
                except grpc.RpcError as error:
                    if error.code() not in LATER or time.monotonic() > until:
                        raise
                    if not self.coordinators.failed(error):
                        time.sleep(0.05)

    def channels(self, method, request):
        return self.call(channel_pb2_grpc.ChannelServiceStub, method, request)

    def nodes(self, method, request):
        return self.call(node_pb2_grpc.NodeServiceStub, method, request)


def write():
    """What accompanies a write: its id makes a retry count once, the actor is in the history."""
    now = int(time.time() * 1000)
    return common_pb2.WriteOptions(
        request_id=secrets.token_bytes(16), issued_ms=now, actor="operator_tool.py"
    )


def watch(operator, options):
    specs = [
        channel_pb2.ChannelSpec(name=name, collection=options.collection) for name in options.names
    ]
    request = channel_pb2.WatchChannelsRequest(write=write(), channels=specs)
    receipt = operator.channels("WatchChannels", request).receipt
    print(common_pb2.WriteOutcome.Name(receipt.outcome), "at revision", receipt.revision)


def list_all(operator, _options):
    request = channel_pb2.ListChannelsRequest()
    while True:
        page = operator.channels("ListChannels", request)
        for channel in page.channels:
            phase = channel_pb2.ChannelPhase.Name(channel.phase).removeprefix("CHANNEL_PHASE_")
            owner = channel.owner.node_name or "-"
            print(f"{channel.spec.name}\t{phase.lower()}\t{owner}\tt{channel.term}")
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def explain(operator, options):
    request = channel_pb2.ExplainChannelRequest(name=options.name)
    answer = operator.channels("ExplainChannel", request)
    print(answer.summary)
    if answer.decision.revision:
        print(f"placed by revision {answer.decision.revision}: {answer.decision.caused_by}")
    if answer.waiting_for:
        print(f"waits for {answer.waiting_for}; unblocked by {answer.unblocked_by}")


def drain(operator, options):
    node = node_pb2.NodeRef(name=options.node)
    receipt = operator.nodes("DrainNode", node_pb2.DrainNodeRequest(write=write(), node=node))
    print("draining at revision", receipt.receipt.revision)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--coordinators", default="127.0.0.1:7420", help="host:port,host:port,...")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("watch", help="announce channels")
    command.add_argument("names", nargs="+")
    command.add_argument("--collection", type=int, default=1)
    command.set_defaults(run=watch)
    commands.add_parser("list", help="all channels").set_defaults(run=list_all)
    command = commands.add_parser("explain", help="why a channel is where it is")
    command.add_argument("name")
    command.set_defaults(run=explain)
    command = commands.add_parser("drain", help="move everything off a worker")
    command.add_argument("node", help="name of the worker")
    command.set_defaults(run=drain)
    options = parser.parse_args()
    try:
        options.run(Operator(options.coordinators), options)
    except grpc.RpcError as error:
        reason, _ = reason_of(error)
        sys.exit(f"{error.details()} ({reason or error.code().name})")


if __name__ == "__main__":
    main()
