"""Recording how far each channel was consumed, under the claim of the session that owns it."""

import grpc
from quorate.v1 import channel_pb2

from leader import reason_of

# The same claim will never hold again: whoever hears this stops, and does not ask a second time.
FINAL = ("NOT_OWNER", "DROPPED", "UNKNOWN_CHANNEL")


def claim_of(node, term):
    return channel_pb2.OwnerClaim(node_id=node[0], node_epoch=node[1], term=term)


def present(reason, facts):
    """Why a claim is over, with the present owner if the answer names one."""
    owner = facts.get("owner_name") or facts.get("owner_node") or "nobody"
    return f"{reason}, it is {owner}'s under t{facts['term']}" if reason == "NOT_OWNER" else reason


async def commit_all(node, stub):
    await check_old(node, stub)
    for name, run in list(node.assignments.running.items()):
        term, count = run[0], run[1] + 1
        # The coordinator refuses a claim that is over; a worker does not even try.
        if not node.may_commit():
            return
        if (name, term) in node.assignments.refused:
            continue
        request = channel_pb2.CommitMetaRequest(
            name=name, claim=claim_of(node.node, term), positions=count.to_bytes(8, "big")
        )
        try:
            await stub.CommitMeta(request, timeout=node.renew_every)
            run[1] = count
            print(f"committed {name} t{term} at {count}", flush=True)
        except grpc.RpcError as error:
            reason, facts = reason_of(error)
            if reason in FINAL:
                node.assignments.refused.add((name, term))
                print(f"commit refused {name} t{term}: {present(reason, facts)}", flush=True)
            else:
                print(f"commit failed {name} t{term}: {error.details()}", flush=True)


async def check_old(node, stub):
    """What became of the claims this node had when it fenced itself: asked once for each."""
    claims = node.old_claims  # a fence in between puts another list in its place
    while claims:
        name, claim = claims[-1]
        request = channel_pb2.CheckOwnerRequest(name=name, claim=claim)
        try:
            await stub.CheckOwner(request, timeout=node.renew_every)
            print(f"claim holds {name} t{claim.term}: nobody took it yet", flush=True)
        except grpc.RpcError as error:
            reason, facts = reason_of(error)
            if reason not in FINAL:
                return  # no answer now: asked again with the next commits
            print(f"claim refused {name} t{claim.term}: {present(reason, facts)}", flush=True)
        claims.pop()
