"""Shardings, meshes or devices do not fit."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line, Raised

KNOWN = Knowledge(
    title="Shardings do not fit: the mesh, the devices, or the sizes of the axes",
    impact=ENDED,
    signs=(
        Raised(
            frames=r"[/\\]jax/(?:_src|experimental|interpreters)/[^\n]*\Z",
            about=r"^(?:[\w.]+: )*(?:Value|Type|Assertion|NotImplemented|Runtime|Indivisible|NonUniformSharding)Error: "
            r"(?!.{0,400}(?:non-addressable|[Rr]estor|[Cc]heckpoint|Traced<|Mosaic|lowering)).{0,300}\b"
            r"(?:[Ss]hard(?:ings?|ed|s)?|[Mm]esh|device_assignment|shard_map)\b",
        ),
        Raised(
            frames=r"[/\\]jax/(?:_src/|experimental/)(?:shard_map|sharding\w*|named_sharding|mesh\w*|partition_spec|"
            r"pjit_utils|layout)\.py\Z",
            about="^(?:[\\w.]+: )*(?:Value|Type|Assertion|NotImplemented|Runtime|Key|Name)Error",
        ),
        Line(
            r"ShardingTypeError|= \d+ must equal len\(devices\)|"
            r"must equal (?:the )?(?:number of )?(?:\w+ )?devices = \d"
        ),
        Line(
            r"Memory kinds? .{0,60}(?:do|does) not match|Received incompatible devices for p?jit\w* computation|"
            r"does not evenly divide the dimension size"
        ),
        Line(
            "was given the sharding of .{0,300}which implies that|"
            r"should be divisible by \d+, but it is equal to"
        ),
        Line(
            r"[Nn]umber of (?:\w+ )?devices:? .{0,40}(?:must|does not|is not|doesn.t|!=|should)|(?:mesh|"
            r"Mesh) .{0,100}(?:requires|"
            r"must equal|does not match).{0,60}device|does not match the product of the parallelism|"
            r"(?:Insufficient|[Nn]ot enough|[Tt]oo few) devices|requires \d+ (?:logical )?devices, but only|"
            r"(?:requires|needs|expected) (?:at least )?\d+ devices.{0,60}(?:found|got|available|only|have)|"
            r"device_?count.{0,60}(?:!=|does not match|must)"
        ),
        Line(
            r"Resource axis: .{0,80} not found in mesh|is not found in mesh|pmap got inconsistent sizes|"
            r"[Ii]ncompatible shardings?|[Ss]harding\w* .{0,120}(?:not compatible|incompatible|"
            r"is only valid for values of rank)|"
            r"(?:not divisible by|must be divisible by|divide evenly).{0,80}(?:mesh|shard|devices?|parallel|"
            r"tp_size|world)|"
            r"(?:mesh|shard|parallel|tp_size|num_devices|device_count).{0,100}(?:not divisible by|"
            r"must be divisible by|divide evenly)|"
            r"(?:mesh|Mesh|[Ss]harding|devices) .{0,160}(?:should|must|does not|do not|doesn't) (?:match|be equal|"
            r"be the same)|"
            r"Sharding of jax\.Array cannot be None|not all (?:of the )?devices .{0,40}(?:present|addressable)"
        ),
        # A save or a restore whose arrays are not where this job has its devices.
        Line(
            r"[Ss]harding passed to (?:de)?seriali[sz]ation should be|Cannot seriali[sz]e host local |"
            r"Device \S+ was not found in jax\.(?:local_)?devices\(\)|does not exist in provided `global_mesh`"
        ),
        Line(r"cannot reshape array of size \d+ into shape", code=r"devices\(\)|[Mm]esh"),
        Line(
            r"(?:Value|Type|Assertion|NotImplemented)Error: .{0,400}(?:evenly divisible|NamedSharding|"
            r"PartitionSpec|[Mm]esh ax(?:is|es)|"
            r"mesh_shape|device mesh)",
            unless="restor|[Cc]heckpoint|on-disk|tree",
        ),
    ),
    fix=(
        "Make the sizes of sharded axes multiples of the mesh's axes, and put all arguments on "
        "one mesh; check that the job got as many devices as its mesh asks for."
    ),
    runbook="JaxFunctionErrors",
)
