"""What lives and deaths are made of."""
