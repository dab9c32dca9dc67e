"""Actions of the agent next to looking: captures and the like, each of which a person allowed. Nothing here destroys.

Without a policy there is no desk, and nothing here is registered anywhere. See `desk.Desk` for the order of the gates.
"""
