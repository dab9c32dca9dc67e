"""What several patterns use."""
