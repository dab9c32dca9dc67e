"""Facts, processes, checks and pages that tests share."""
