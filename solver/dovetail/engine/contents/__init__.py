"""What one node may hold: priced near its best, or searched to the end with a proof."""
