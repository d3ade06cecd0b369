#ifndef FUCINA_OPS_CONTEXT_H_
#define FUCINA_OPS_CONTEXT_H_

// What every op is given: who works and with which kernels.

namespace fucina {

class ThreadPool;
struct Kernels;

namespace ops {

// References only: copy it freely. Both must outlive the calls.
struct Context {
  ThreadPool& pool;
  const Kernels& kernels;
};

}  // namespace ops
}  // namespace fucina

#endif  // FUCINA_OPS_CONTEXT_H_
