"""Profiles of the devices' time: a trace in, facts out.

`reading` finds and reads traces, `tracks` sorts their events by device, `programs` says what each operation is,
`analysis` adds it up, `idle` names the reasons for gaps, and `comparison` says what got slower.
"""
