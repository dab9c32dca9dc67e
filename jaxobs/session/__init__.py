"""Begin and end of observation: `install`, `start`, `serve`, the sampler, signals, forks, notebooks."""
