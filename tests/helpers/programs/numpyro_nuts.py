"""NumPyro: NUTS on a hierarchical model, eight schools."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, Predictive

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(errors: Any, effects: Any = None) -> None:
    """The model, with its scale apart from its shape."""
    mean = numpyro.sample("mean", dist.Normal(0, 5))
    scale = numpyro.sample("scale", dist.HalfCauchy(5))
    with numpyro.plate("school", len(ERRORS)):
        offset = numpyro.sample("offset", dist.Normal(0, 1))
        numpyro.sample("effect", dist.Normal(mean + scale * offset, errors), obs=effects)


def main() -> None:
    """Samples and predicts."""
    mcmc = MCMC(NUTS(eight_schools), num_warmup=100, num_samples=100, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0), ERRORS, effects=EFFECTS)
    samples = mcmc.get_samples()
    for name in sorted(samples):
        print(name, samples[name].shape, round(float(samples[name].mean()), 4))
    predicted = Predictive(eight_schools, samples)(jax.random.PRNGKey(1), ERRORS)
    print("effect", predicted["effect"].shape)


if __name__ == "__main__":
    main()
