#ifndef FUCINA_MODELS_RECIPE_MUON_H_
#define FUCINA_MODELS_RECIPE_MUON_H_

// The direction of a Muon step (Jordan 2024, "Muon: an optimizer for hidden
// layers"). Part of train_dense.cc.

#include <algorithm>
#include <cmath>
#include <vector>

#include "bf16_products.h"

using std::vector;

// Newton-Schulz iteration towards the nearest (semi-)orthogonal matrix; g is [r
// x c], the result replaces it
static void orthogonal(vector<float>& g, int r, int c, int steps) {
  bool flip = r > c;
  int a = std::min(r, c), b = std::max(r, c);
  vector<float> x(long(a) * b), t(long(a) * a), u(long(a) * a), y(long(a) * b);
  double q = 0;
  for (float v : g) q += double(v) * v;
  float inv = float(1 / (std::sqrt(q) + 1e-12));
  for (int i = 0; i < a; i++)
    for (int j = 0; j < b; j++)
      x[long(i) * b + j] =
          inv * (flip ? g[long(j) * c + i] : g[long(i) * c + j]);
  vector<bf> xb(long(a) * b);
  vector<u32> panel(long(a) * b);
  for (int it = 0; it < steps; it++) {
    to_rows(x.data(), long(a) * b, xb.data());
    pack_fwd(x.data(), a, b, panel.data());
    gemm(a, a, b / 2, (const u32*)xb.data(), b / 2, 1, panel.data(), t.data(),
         a, false);  // t = x x^T
    vector<bf> tb(long(a) * a);
    to_rows(t.data(), long(a) * a, tb.data());
    pack_fwd(t.data(), a, a, panel.data());
    gemm(a, a, a / 2, (const u32*)tb.data(), a / 2, 1, panel.data(), u.data(),
         a, false);  // u = t t
    for (long i = 0; i < long(a) * a; i++)
      u[i] = -4.7750f * t[i] + 2.0315f * u[i];
    to_rows(u.data(), long(a) * a, tb.data());
    pack_bwd(x.data(), a, b, panel.data());
    gemm(a, b, a / 2, (const u32*)tb.data(), a / 2, 1, panel.data(), y.data(),
         b, false);  // y = u x
    for (long i = 0; i < long(a) * b; i++) x[i] = 3.4445f * x[i] + y[i];
  }
  for (int i = 0; i < a; i++)
    for (int j = 0; j < b; j++)
      (flip ? g[long(j) * c + i] : g[long(i) * c + j]) = x[long(i) * b + j];
}

#endif  // FUCINA_MODELS_RECIPE_MUON_H_
