"""What tests share: facts, processes, checks and pages, made in one place."""
