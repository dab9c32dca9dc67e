"""What is counted: the meters that the hot paths write, and the store that makes a snapshot of them."""
