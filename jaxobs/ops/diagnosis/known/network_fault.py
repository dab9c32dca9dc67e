"""The network between the hosts failed."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ANY_END, ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="The network between the hosts failed",
    impact=ENDED,
    signs=(
        Line(
            r"NET/(?:IB|Socket|OFI|Plugin)\b.{0,200}(?:[Gg]ot completion.{0,80}(?:error|status)|"
            "[Tt]imed? ?out|failed|vendor err|unreachable)"
        ),
        Line("(?:No route to host|Network is (?:unreachable|down)|Destination Host Unreachable)"),
        Line(
            r"transport retry counter exceeded|IBV_WC_RETRY_EXC_ERR|ibv_\w+\(?\)? failed|"
            r"NCCL WARN NET/IB.{0,60}fatal event",
            unless="Cannot allocate memory|Operation not permitted|Call to ibv_(?:create|reg|alloc|open)_",
        ),
        Line(
            r"(?:mlx\d\w*|ib\d+|eth\d+|ens\w+|bond\d+).{0,80}(?:[Ll]ink (?:is )?(?:[Dd]own|DOWN)|"
            "carrier lost|port .{0,20}down)",
            info=True,
            passes=False,
        ),
        Line(
            "(?:errno 110|Connection timed out).{0,160}(?:NCCL|gloo|socket|coordinat)|(?:NCCL|gloo|"
            r"socket|coordinat\w*).{0,200}(?:Connection timed out)"
        ),
        Line(
            r"NCCL WARN NET/\w+ Request .{0,60}completed with error|ucp_ep_create.{0,60}Destination is unreachable|"
            r"\bUCX +ERROR\b.{0,120}(?:timed out|[Nn]o route|unreachable|[Rr]etry count exceeded)"
        ),
        Line(r"observed errors are: \[Network\]|likely caused by a networking issue|NETWORKING_ISSUE"),
        Line(
            r"(?:socketStartConnect|Connect to \S+ failed|Call to connect).{0,60}(?:connection abort|[Nn]o route|"
            r"timed out|"
            r"unreachable)"
        ),
    ),
    follows=(ANY_END,),
    fix=(
        "Check the links of the hosts that are named (`ibstat`, switch counters, `dmesg`); a "
        "host that is named in several pairs is the suspect."
    ),
    collect="NCCL_DEBUG=WARN output of all processes, link counters of their hosts.",
    runbook="JaxDeviceLinkFault",
)
