example(1)
assert sum(each.count for each in jaxobs.snapshot().transfers) >= 200
