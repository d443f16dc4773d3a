"""The nouns that all layers share. Pure, and imports nothing of Ordercast."""
