"""What every room may use: failures of ours, threads, settings, folders that are registries."""
