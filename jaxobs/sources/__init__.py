"""What is watched: one file for each source of facts, found by the folder. None knows another."""
