// A shared library with a plugin's name and nothing of a plugin in it.

extern "C" __attribute__((visibility("default"))) int
fucina_test_no_manifest() {
  return 1;
}
