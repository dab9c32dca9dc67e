"""Logistic regression with NumPyro's SVI, which reads the loss on the host in each step."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoDiagonalNormal
from sklearn.datasets import load_breast_cancer

x, y = load_breast_cancer(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)


def model(x, y=None):
    weights = numpyro.sample("weights", dist.Normal(jnp.zeros(x.shape[1]), 1).to_event(1))
    bias = numpyro.sample("bias", dist.Normal(0, 1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights + bias), obs=y)


guide = AutoDiagonalNormal(model)
svi = SVI(model, guide, numpyro.optim.Adam(0.01), Trace_ELBO(num_particles=8))
state = svi.init(jax.random.PRNGKey(0), x, y)
update = jax.jit(svi.update)
losses = []
#: step
for number in range(1, 4001):
    state, loss = update(state, x, y)
    losses.append(float(loss))
    if number % 1000 == 0:
        print(f"step {number}: ELBO {-np.mean(losses[-100:]):.2f}")
#: other
median = guide.median(svi.get_params(state))
print(f"largest weight: {np.argmax(np.abs(median['weights']))}")
