"""Programs that recompile for one known reason, or not at all, and how often jaxobs names it.

`programs/` holds the programs; `judging` compares what jaxobs and JAX's own explainer say about each with its cause.
`python -m benchmarks.corpus` runs them under every JAX and `--write` writes `docs/causes.md` of it.
`make test-versions` runs all of it.
"""
