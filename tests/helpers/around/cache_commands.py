import time


example(1)
assert evaluate(jnp.ones((4, 2)), augment(jnp.ones((3, 4)))) > 0
