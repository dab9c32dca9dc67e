"""Valid files and answers with one thing changed: what `tools.fuzz_readers` gives to every reader."""
