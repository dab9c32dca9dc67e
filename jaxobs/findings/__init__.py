"""What is wrong over time: patterns of compilations, leaks, input, several processes."""
