"""What findings about inputs are made of."""
