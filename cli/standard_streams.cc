#include "cli/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace fucina::cli {

void OccupyClosedStreams() {
  // In order: a new descriptor takes the lowest free number.
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // The wrong way round: each use is an error, as if it were closed.
    (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace fucina::cli
