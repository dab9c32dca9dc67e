"""A regression by NUTS for each of five made-up groups, with a new MCMC object for each."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def model(x, y=None):
    intercept = numpyro.sample("intercept", dist.Normal(0, 5))
    slope = numpyro.sample("slope", dist.Normal(0, 5))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(intercept + slope * x, noise), obs=y)


random = np.random.default_rng(0)
for group in range(5):
    x = random.normal(size=50).astype(np.float32)
    y = (group + 2 * x + 0.3 * random.normal(size=50)).astype(np.float32)
    mcmc = MCMC(NUTS(model), num_warmup=300, num_samples=300, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(group), x, y)
    samples = mcmc.get_samples()
    print(f"group {group}: slope {samples['slope'].mean():.2f}, intercept {samples['intercept'].mean():.2f}")
