"""A data node of Quorate on grpcio: registers, renews, watches, acknowledges, fences itself.

    python data_node.py --coordinators 127.0.0.1:7420 --name py1
"""

import argparse
import asyncio
import secrets
import signal
import time

import grpc
from quorate.v1 import channel_pb2_grpc, common_pb2, node_pb2, node_pb2_grpc

from assignments import Assignments
from commits import claim_of, commit_all
from leader import Coordinators, reason_of

ANSWER_WITHIN = 2.0  # seconds for a registration


class DataNode:
    def __init__(self, options):
        self.options, self.coordinators = options, Coordinators(options.coordinators)
        self.seq, self.stopping, self.goodbye = 0, False, False
        self.assignments, self.old_claims = Assignments(), []
        self.begin_anew()

    def begin_anew(self):
        """A new session: another incarnation, and nothing runs."""
        self.incarnation = secrets.token_hex(16)
        self.node, self.fence_at, self.leader_term = None, None, 0
        self.assignments.clear()

    def may_commit(self):
        return self.fence_at is not None and time.monotonic() < self.fence_at

    def fence(self, why):
        stopped = len(self.assignments.running)
        self.old_claims = [
            (name, claim_of(self.node, run[0])) for name, run in self.assignments.running.items()
        ]
        print(f"fenced n{self.node[0]}, {stopped} stopped: {why}", flush=True)
        self.begin_anew()

    async def run(self):
        while not self.goodbye:
            try:
                options = [("grpc.use_local_subchannel_pool", 1)]  # no back-off from earlier ones
                address = self.coordinators.leader
                async with grpc.aio.insecure_channel(address, options) as channel:
                    await self.session(channel)
            except ConnectionError:
                self.coordinators.failed()
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.INVALID_ARGUMENT:
                    raise
                if reason_of(error)[0] == "STALE_NODE" and self.node:
                    self.fence("the session is over")
                elif not self.coordinators.failed(error):
                    await asyncio.sleep(0.05)
            if self.node and not self.may_commit():
                self.fence("no renewal was acknowledged in time")

    async def session(self, channel):
        """One stream. Returns when the session is over, raises when only the stream is."""
        call = node_pb2_grpc.NodeServiceStub(channel).Session()
        self.sent, self.registered = {}, False  # seq -> when it was sent
        self.assignments.pieces.clear()
        await self.send(call, register=node_pb2.Register(
            name=self.options.name, address=self.options.name, role=common_pb2.ROLE_DATA,
            incarnation=self.incarnation, running=self.assignments.runs(),
        ))
        self.due = time.monotonic() + ANSWER_WITHIN
        reading, committing = asyncio.ensure_future(call.read()), None
        while True:
            wake_at = self.due if self.fence_at is None else min(self.due, self.fence_at)
            await asyncio.wait({reading}, timeout=max(0, wake_at - time.monotonic()))
            # This process may have been stopped meanwhile: the clock comes first.
            if self.node and not self.may_commit():
                return
            if reading.done():
                message = reading.result()
                if message is grpc.aio.EOF or message.leader_term < self.leader_term:
                    raise ConnectionError("the stream ended, or a deposed leader speaks")
                if message.WhichOneof("body") == "fence":
                    return None if self.goodbye else self.fence(message.fence.reason)
                self.take(message)
                reading = asyncio.ensure_future(call.read())
            if time.monotonic() >= self.due and not self.goodbye:
                oldest = min(self.sent.values(), default=time.monotonic())
                if not self.registered or time.monotonic() > oldest + self.renew_every:
                    raise ConnectionError("no answer")
                self.due = time.monotonic() + self.renew_every
                await self.report(call)
                if committing is None or committing.done():
                    stub = channel_pb2_grpc.ChannelServiceStub(channel)
                    committing = asyncio.ensure_future(commit_all(self, stub))

    async def send(self, call, **body):
        self.seq += 1
        self.sent[self.seq] = time.monotonic()
        await call.write(node_pb2.SessionRequest(seq=self.seq, **body))

    async def report(self, call):
        who = {"node_id": self.node[0], "node_epoch": self.node[1]}
        if self.stopping and self.assignments.drained():
            self.goodbye = True
            return await self.send(call, goodbye=node_pb2.Goodbye(**who))
        await self.send(call, report=node_pb2.Report(
            **who, acks=self.assignments.acks.values(), running=self.assignments.runs(),
            running_complete=True, stopping=self.stopping,
        ))

    def take(self, message):
        self.leader_term = message.leader_term
        body, sent_at = message.WhichOneof("body"), self.sent.pop(message.seq, None)
        if body == "registered":
            self.take_registered(message.registered, sent_at)
        elif body == "renewed" and sent_at is not None:
            # Counted from the moment of sending: the coordinator may count from then on.
            self.fence_at = sent_at + self.lifetime
            for verdict in message.renewed.acks:
                self.assignments.settle(verdict)
        elif body == "directives":
            self.assignments.take(message.directives)
            self.due = 0.0 if self.assignments.acks else self.due

    def take_registered(self, answer, sent_at):
        node = (answer.node_id, answer.node_epoch)
        self.lifetime = (answer.ttl_ms - answer.margin_ms) / 1000
        self.renew_every, self.registered, self.due = answer.renew_every_ms / 1000, True, 0.0
        if self.node is None:
            self.node, self.fence_at = node, sent_at + self.lifetime
            print(f"registered n{node[0]} epoch {node[1]}", flush=True)
        elif self.node != node:
            self.fence_at = 0.0  # what runs here belongs to a session that is over


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--coordinators", default="127.0.0.1:7420", help="host:port,host:port,...")
    parser.add_argument("--name", required=True, help="stable and unique")
    node = DataNode(parser.parse_args())
    stop = asyncio.get_running_loop().add_signal_handler
    stop(signal.SIGTERM, setattr, node, "stopping", True)
    await node.run()
    print("left", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
