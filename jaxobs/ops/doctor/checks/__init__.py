"""What is looked at: one file for each check, found by the folder.

A check has `ABOUT`, one sentence for the reference, and `check(machine)`, which yields a finding for each thing that it
looked at: at least one, also where all is well.
"""

EACH_HAS = ("ABOUT", "check")
