"""What is watched: one file for each source of facts, found by the folder. None knows another.

A source's module has `source(store)`, which makes an object with `start`, `stop`, `sample` and `after_fork`. What
sources share lies in `support`.
"""

EACH_HAS = ("source",)
