"""Settings of the tests that run inside pytest; whole-stack tests start the desk's own."""

import atexit
import os
import shutil
import tempfile

# Before the desk's settings are read. One folder for each process, removed at its end; conftest
# removes it too, since the test runner's workers end without ceremony.
os.environ["ORDERDESK_DATA"] = tempfile.mkdtemp(prefix="orderdesk-test-")
atexit.register(shutil.rmtree, os.environ["ORDERDESK_DATA"], ignore_errors=True)
os.environ["ORDERDESK_DEBUG"] = "1"  # static files from where they lie

from orderdesk.settings import *  # noqa: E402, F403

DEBUG = False
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # fast, and worthless
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405
    # A file, as in life: other connections and processes can open it.
    DATABASES["default"]["TEST"] = {"NAME": f"{os.environ['ORDERDESK_DATA']}/test.sqlite3"}  # noqa: F405
