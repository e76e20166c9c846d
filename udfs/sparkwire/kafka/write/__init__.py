"""Write partition directories that a broker starts on, and check them."""
