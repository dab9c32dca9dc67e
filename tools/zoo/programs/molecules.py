"""Molecular dynamics of 64 particles: blocks of a hundred steps on the device, and the energies of each printed."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

BOX, COUNT, DT = 7.0, 64, 0.002


def energy(places):
    away = places[:, None] - places[None]
    away -= BOX * jnp.round(away / BOX)
    squared = jnp.sum(away**2, -1) + jnp.eye(COUNT)
    near = (squared < 6.25) & ~jnp.eye(COUNT, dtype=bool)
    inverse = 1.0 / squared**3
    return 2.0 * jnp.sum(jnp.where(near, inverse**2 - inverse, 0.0))


force = jax.grad(lambda places: -energy(places))


@functools.partial(jax.jit, static_argnames="steps")
def simulate(places, speeds, steps):
    def verlet(_, carry):
        places, speeds, pull = carry
        speeds = speeds + 0.5 * DT * pull
        places = (places + DT * speeds) % BOX
        pull = force(places)
        return places, speeds + 0.5 * DT * pull, pull

    places, speeds, _ = jax.lax.fori_loop(0, steps, verlet, (places, speeds, force(places)))
    return places, speeds, energy(places), 0.5 * jnp.sum(speeds**2)


grid = np.stack(np.meshgrid(*[np.arange(4)] * 3), -1).reshape(-1, 3) * (BOX / 4)
places = grid.astype(np.float32)
speeds = np.random.default_rng(0).normal(size=(COUNT, 3)).astype(np.float32)
speeds -= speeds.mean(0)
#: step
for block in range(40):
    places, speeds, potential, kinetic = simulate(places, speeds, steps=100)
    total = float(potential) + float(kinetic)
    if block % 10 == 0:
        print(f"block {block}: total energy {total:.0f}")
#: other
