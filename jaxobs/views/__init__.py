"""What a person reads: terminal, report, the story of a log, two runs compared."""
