"""Write partition directories with which a broker can start, and check them."""
