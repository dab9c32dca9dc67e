"""Where the facts go: one file for each destination, found by the folder. None knows another."""
