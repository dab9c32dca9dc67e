"""Fits a decay to what each of eight made-up sensors measured, with Optimistix."""

import jax.numpy as jnp
import numpy as np
import optimistix

random = np.random.default_rng(0)
times = np.linspace(0, 4, 80).astype(np.float32)
truth = random.uniform(0.5, 2.0, size=(8, 2)).astype(np.float32)
measured = truth[:, :1] * np.exp(-truth[:, 1:] * times) + 0.01 * random.normal(size=(8, 80))
measured = jnp.asarray(measured, jnp.float32)
start = jnp.ones(2)

solver = optimistix.LevenbergMarquardt(rtol=1e-5, atol=1e-5)
#: step
for sensor, values in enumerate(np.asarray(measured)):

    def residuals(parameters, _):
        amplitude, rate = parameters
        return amplitude * jnp.exp(-rate * times) - values

    solution = optimistix.least_squares(residuals, solver, start)
    amplitude, rate = np.asarray(solution.value)
    print(f"sensor {sensor}: amplitude {amplitude:.3f}, rate {rate:.3f}")
