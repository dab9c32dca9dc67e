example(1)
assert {1, 2, 4} & {each.count for each in jaxobs.snapshot().array_groups}
