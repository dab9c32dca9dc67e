"""jax and jaxlib are of versions that do not fit."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line, Raised

KNOWN = Knowledge(
    title="The versions of jax and jaxlib do not fit",
    impact=ENDED,
    signs=(
        Line(r"jaxlib version \S+ is (?:newer|older) than"),
        Line(r"jaxlib is version \S+, but this version of jax requires|\bjax requires jaxlib to be installed"),
        Line(
            r"cannot import name '\w+' from 'jaxlib|module 'jaxlib[\w.]*' has no attribute|"
            r"No module named 'jaxlib\.",
            within=r"\bjax(?:lib)?/",
        ),
        Raised(
            frames=r"\bjax/[^\n]*\Z",
            about=r"AttributeError: .{0,40}\bjaxlib\.[\w.]+'?(?: object)? has no attribute|"
            r"TypeError: (?:register_\w+|_?pjit|_?pmap|_?jit|compile\w*|make_\w+|get_\w+|__init__|[A-Z]\w+|"
            r"weakref_lru_cache)\(\): incompatible (?:function|constructor) arguments",
        ),
    ),
    fix="Install both at once and pin both: `pip install -U jax jaxlib`.",
)
