"""The journal's triggers, the desk's prefix, and the roles."""

import os
from typing import Any

from django.db import migrations
from django.utils import timezone

from orders import append_only
from orders.identity import PREFIX_LENGTH, new_prefix
from orders.roles import Role


def install(apps: Any, schema_editor: Any) -> None:
    append_only.install(schema_editor.connection)


def uninstall(apps: Any, schema_editor: Any) -> None:
    append_only.uninstall(schema_editor.connection)


def name_desk(apps: Any, schema_editor: Any) -> None:
    prefix = new_prefix(os.urandom(PREFIX_LENGTH))
    apps.get_model("orders", "Desk").objects.get_or_create(
        id=1, defaults={"prefix": prefix, "created_at": timezone.now()}
    )


def make_roles(apps: Any, schema_editor: Any) -> None:
    group = apps.get_model("auth", "Group")
    for role in Role:
        group.objects.get_or_create(name=role.value)


class Migration(migrations.Migration):
    dependencies = [("orders", "0001_initial"), ("auth", "0012_alter_user_first_name_max_length")]

    operations = [
        migrations.RunPython(install, uninstall),
        migrations.RunPython(name_desk, migrations.RunPython.noop),
        migrations.RunPython(make_roles, migrations.RunPython.noop),
    ]
