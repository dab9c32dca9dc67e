"""What processes tell each other, and what findings across them are made of."""
