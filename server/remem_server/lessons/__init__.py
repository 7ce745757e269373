"""What is said about each lesson, what it comes to, and how it is found."""
