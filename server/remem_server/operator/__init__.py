"""What the operator does, here and from another machine."""
