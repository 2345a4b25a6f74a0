"""Run by Alembic: the migrations, in the transaction of `migrate`."""

from alembic import context

from ldprecover_server.storage.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
