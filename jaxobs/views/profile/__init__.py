"""A profile for people: as text for a terminal. Nothing in here prints."""
