"""The project: settings, URLs, the ASGI application and the account file. Wiring only."""
