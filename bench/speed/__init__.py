"""What bench/run is made of: parts (part_*.py) measure, the rest helps them."""
