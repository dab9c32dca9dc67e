"""What a program calls: `jit`, `instrument`, `step`, `data`, `request`, `phase`, `watch`, and the middleware."""
