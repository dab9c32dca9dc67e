"""What several sources use."""
