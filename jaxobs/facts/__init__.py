"""Facts: frozen, plain data of events and states, which tests can make by hand.

Two families, a module for each subject. An *event* is something that happened (a subclass of `events.Event`): one line
of the event log, one entry of the ring behind `/api/v1/events`. A *state* is how things are at a moment:
`snapshot.Snapshot` and what it is made of, the answer of `/api/v1/snapshot`. Times are seconds since the epoch,
durations seconds, sizes bytes. None means not known, or not reported by the backend; it never means zero.
"""
