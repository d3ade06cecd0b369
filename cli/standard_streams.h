#ifndef FUCINA_CLI_STANDARD_STREAMS_H_
#define FUCINA_CLI_STANDARD_STREAMS_H_

namespace fucina::cli {

// Takes the places of standard streams that the caller has closed, so that no
// file of ours gets their numbers: a model would be read as the user's input,
// and answers would be written into a file. Reading and writing them fails as
// on a closed stream. Call it first.
void OccupyClosedStreams();

}  // namespace fucina::cli

#endif  // FUCINA_CLI_STANDARD_STREAMS_H_
