"""The pages. Each view's decorator says which right it needs."""
