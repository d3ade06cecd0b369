# fucina_add_plugin(): see docs/plugins.md
