"""A commons as a node among others: what it hands out and takes in, its peers, and when it asks them."""
