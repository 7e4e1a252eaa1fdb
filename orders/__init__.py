"""Intents, their journal, and the lanes that drive them."""
