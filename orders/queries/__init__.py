"""Every read that a page or the API needs. Reads take no lock and open no transaction."""
