#ifndef FUCINA_CLI_FILE_FAULT_H_
#define FUCINA_CLI_FILE_FAULT_H_

#include <string>

namespace fucina::cli {

// A page of a mapped file that is gone, because somebody cut the file short or
// the disk fails, is no status but a signal. From now on it ends the program
// with an error that names `path`, the file in use (empty: not known), and the
// status of a file that cannot be used.
void ReportFileFaults(const std::string& path);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_FILE_FAULT_H_
