#ifndef FUCINA_EXPORT_H_
#define FUCINA_EXPORT_H_

// FUCINA_API marks what libfucina.so offers to programs and plugins. The
// library is built with hidden visibility, so a name without it stays inside.
#define FUCINA_API __attribute__((visibility("default")))

#endif  // FUCINA_EXPORT_H_
