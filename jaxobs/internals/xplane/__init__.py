"""Files of JAX's profiler (`*.xplane.pb`): the events of a trace, and the programs that ran in it.

Read by the format's own rules, without JAX, so that a trace of any version can be read on a machine that has none.
`jax.profiler.ProfileData` reads the events too, but it's missing before JAX 0.7, and it leaves out what holds for all
events of a name: the programs (HLO) on the plane `/host:metadata`, and the costs that TPUs report.
"""
