"""A Metropolis sampler whose chain grows by `jnp.concatenate`."""

import jax
import jax.numpy as jnp
import numpy as np

data = np.random.default_rng(0).normal(1.5, 1.0, size=200).astype(np.float32)


def log_density(mu):
    return -0.5 * jnp.sum((data[:, None] - mu) ** 2) - 0.5 * jnp.sum(mu**2)


@jax.jit
def metropolis(key, mu):
    propose, accept = jax.random.split(key)
    proposal = mu + 0.1 * jax.random.normal(propose, mu.shape)
    better = jnp.log(jax.random.uniform(accept)) < log_density(proposal) - log_density(mu)
    return jnp.where(better, proposal, mu)


mu = np.ones(2, np.float32)
chain = np.ones((1, 2), np.float32)
keys = np.asarray(jax.jit(lambda key: jax.random.split(key, 64))(jax.random.PRNGKey(0)))
#: step
for key in keys:
    mu = metropolis(key, mu)
    chain = jnp.concatenate([chain, mu[None]])
#: other
print(f"{len(chain)} samples, mean {np.asarray(chain)[20:].mean():.2f}")
