"""What several conditions use."""
