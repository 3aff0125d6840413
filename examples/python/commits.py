"""Recording how far each channel was consumed, under the claim of the session that owns it."""

import grpc
from quorate.v1 import channel_pb2


async def commit_all(node, stub):
    for name, run in list(node.assignments.running.items()):
        term, count = run[0], run[1] + 1
        # The coordinator refuses a claim that is over; a worker does not even try.
        if not node.may_commit():
            return
        node_id, epoch = node.node
        claim = channel_pb2.OwnerClaim(node_id=node_id, node_epoch=epoch, term=term)
        request = channel_pb2.CommitMetaRequest(
            name=name, claim=claim, positions=count.to_bytes(8, "big")
        )
        try:
            await stub.CommitMeta(request, timeout=node.renew_every)
            run[1] = count
            print(f"committed {name} t{term} at {count}", flush=True)
        except grpc.RpcError as error:
            print(f"commit failed {name} t{term}: {error.details()}", flush=True)
