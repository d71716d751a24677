"""Schema migrations, run by `ftpipeline.store.schema.migrate`."""
