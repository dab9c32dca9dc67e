"""A neural ODE with Diffrax, fitted first to the start of each trajectory and then to all of it."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Field(eqx.Module):
    mlp: eqx.nn.MLP

    def __call__(self, t, y, args):
        return self.mlp(y)


class NeuralODE(eqx.Module):
    field: Field

    def __call__(self, times, y0):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(self.field),
            diffrax.Tsit5(),
            t0=times[0],
            t1=times[-1],
            dt0=times[1] - times[0],
            y0=y0,
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
            saveat=diffrax.SaveAt(ts=times),
        )
        return solution.ys


@jax.jit
def trajectories(starts, times):
    """Returns the trajectories of a damped oscillator."""
    decay, turn = jnp.exp(-0.1 * times)[:, None], 2.0 * times
    cos, sin = jnp.cos(turn), jnp.sin(turn)
    rotations = jnp.stack([jnp.stack([cos, sin], -1), jnp.stack([-sin, cos], -1)], -2)
    return jax.vmap(lambda y: decay * (rotations @ y))(starts)


optimizer = optax.adabelief(3e-3)


@eqx.filter_jit
def build(key):
    model = NeuralODE(Field(eqx.nn.MLP(2, 2, 64, 2, activation=jax.nn.softplus, key=key)))
    return model, optimizer.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit
def train_step(model, state, times, batch):
    @eqx.filter_value_and_grad
    def loss_fn(model):
        predicted = jax.vmap(model, in_axes=(None, 0))(times, batch[:, 0])
        return jnp.mean((predicted - batch) ** 2)

    loss, gradients = loss_fn(model)
    updates, state = optimizer.update(gradients, state)
    return eqx.apply_updates(model, updates), state, loss


random = np.random.default_rng(0)
times = np.linspace(0, 5, 40).astype(np.float32)
data = np.asarray(trajectories(random.uniform(-1, 1, size=(256, 2)).astype(np.float32), times))
model, state = build(jax.random.key(0))
#: step
for length in (10, 40):
    for number in range(1, 61):
        batch = data[random.integers(0, len(data), size=16), :length]
        model, state, loss = train_step(model, state, times[:length], batch)
        if number % 30 == 0:
            print(f"length {length}, step {number}: loss {loss:.5f}")
