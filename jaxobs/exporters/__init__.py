"""Where the facts go: one file for each destination, found by the folder. None knows another.

An exporter's module has `routes(store)`, the paths of the endpoint that it answers; or `exporter(store, settings)`,
which makes an object with `every`, `sample`, `close` and `after_fork`, or None where the settings do not want it; or
both. What exporters share lies in `forms`.
"""

EACH_HAS = ("routes | exporter",)
