"""What is assumed of the unknown function and of the noise."""
