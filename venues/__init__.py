"""Everything that talks to a venue. Knows nothing of intents, journals or browsers."""
