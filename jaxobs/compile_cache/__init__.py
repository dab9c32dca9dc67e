"""The persistent cache, seen from outside: inspect, verify and warm it, and compile ahead (`jaxobs.warmup`).

Nothing here loads an entry or deletes a file. `directory` lists what is there and which version stored it, `entries`
reads one entry, `checkup` says what is wrong. `trial` runs a command twice, `observer`
watches it from inside, `events` reads what was seen, `verdicts` says per function whether the second start hit, and
`comparison` tells it.
"""
