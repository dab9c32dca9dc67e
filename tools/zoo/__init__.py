"""A zoo of real programs: what someone who knows each of them would say, and what jaxobs says.

`programs` and `examples/systems` have the programs, as users of those libraries write them; `known` has an entry for
each, with what is to be expected.
"""
