"""JAX: molecular dynamics, with `fori_loop` inside of jit and a print for each block."""

from tools.zoo.entry import Entry, FirstTry, Loop

ENTRY = Entry(
    projects=("jax",),
    says="Sound: one program. The energies are read after each block, which costs nothing next to a hundred steps.",
    causes={"simulate": {"first_call": 1}},
    loop=Loop("simulate", 40),
    verdict="ok",
    first_try=FirstTry("right"),
)
