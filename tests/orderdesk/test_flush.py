"""A test may empty the tables, and yet nothing else may rewrite the journal."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connection
from django.db.utils import DatabaseError

from orders.models import Desk, Transition

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


def test_after_a_flush_the_triggers_the_roles_and_the_desk_are_there() -> None:
    prefix = Desk.objects.get().prefix
    call_command("flush", interactive=False, verbosity=0)
    assert Desk.objects.get().prefix == prefix
    assert Group.objects.count() == 4
    name = connection.ops.quote_name(Transition._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {name} (at, subject, event, from_state, to_state, actor, reason,"
            " evidence, act_id) VALUES (CURRENT_TIMESTAMP, 'account', 'recovered', '', '', 'test',"
            " '', '{}', '00000000000000000000000000000000')"
        )
        with pytest.raises(DatabaseError, match="append-only"):
            cursor.execute(f"DELETE FROM {name}")
