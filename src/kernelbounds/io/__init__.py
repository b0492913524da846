"""Write files whole or not at all, and read tables of numbers from them."""
