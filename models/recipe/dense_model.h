#ifndef FUCINA_MODELS_RECIPE_DENSE_MODEL_H_
#define FUCINA_MODELS_RECIPE_DENSE_MODEL_H_

// The qwen3 model of atlas: its parameters in file order, and forward and
// backward over documents of any length side by side. Part of train_dense.cc.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bf16_products.h"

using std::vector;

constexpr int D = 256, H = 4, KV = 2, E = 64, F = 768, V = 4096, MAXL = 6,
              QK = (H + KV) * E, QKV = QK + KV * E;
static int NL = MAXL;  // layers=N: train the first stage with fewer layers, see
                       // `params.py grow`
constexpr float EPS = 1e-6f, THETA = 1e6f;
constexpr int THREADS = 2, MAXPOS = 2048;

struct Param {
  std::string name;
  long at;
  int rows, cols;                      // cols 0: a vector
  vector<std::pair<int, int>> blocks;  // row ranges that are one matrix each
  vector<u32> fwd, bwd;
};
struct LayerAt {
  int attn_norm, ffn_norm, q_norm, k_norm, qkv, out, gate_up, down;
};
static vector<Param> P;
static LayerAt LA[MAXL];
static int P_EMBD, P_FINAL;
static long TOTAL;
static int add_param(std::string n, int r, int c,
                     vector<std::pair<int, int>> b = {}) {
  P.push_back({n, TOTAL, r, c, b, {}, {}});
  TOTAL += long(r) * std::max(c, 1);
  return int(P.size()) - 1;
}
static void make_layout() {
  P_EMBD = add_param("embd", V, D);
  for (int l = 0; l < NL; l++) {
    std::string p = "layers." + std::to_string(l) + ".";
    LA[l].attn_norm = add_param(p + "attn_norm", D, 0);
    LA[l].ffn_norm = add_param(p + "ffn_norm", D, 0);
    LA[l].q_norm = add_param(p + "q_norm", E, 0);
    LA[l].k_norm = add_param(p + "k_norm", E, 0);
    LA[l].qkv =
        add_param(p + "qkv", QKV, D, {{0, H * E}, {H * E, QK}, {QK, QKV}});
    LA[l].out = add_param(p + "out", D, H * E, {{0, D}});
    LA[l].gate_up = add_param(p + "gate_up", 2 * F, D, {{0, F}, {F, 2 * F}});
    LA[l].down = add_param(p + "down", D, F, {{0, D}});
  }
  P_FINAL = add_param("final_norm", D, 0);
  for (auto& p : P)
    if (p.cols)
      p.fwd.resize(long(p.rows) * p.cols / 2),
          p.bwd.resize(long(p.rows) * p.cols / 2);
}
static vector<float> W;  // all parameters
static const float* w(int p) { return W.data() + P[p].at; }

struct Doc {
  vector<uint16_t> ids;
  vector<uint8_t> loss;
};
static vector<float> COS(MAXPOS*E / 2), SIN(MAXPOS*E / 2);

struct Worker {
  int cap = 0, n = 0;  // tokens, even
  struct Saved {
    vector<float> x, mid, qkv, qk, gu, r1, r2, rq, lse;
    vector<bf> h1, o, h2, act;
  };
  Saved s[MAXL];
  vector<float> x, rf, grad, t1, t2, dx, logits, dqk;
  vector<bf> hf, b1;
  vector<u32> v1, v2;
  vector<int> start, ids, target, pos;
  double loss = 0;
  int count = 0;

  void init(int tokens) {
    cap = tokens + 640;
    long c = cap;
    for (int i = 0; i < NL; i++) {
      Saved& l = s[i];
      l.x.resize(c * D), l.mid.resize(c * D), l.qkv.resize(c * QKV),
          l.qk.resize(c * QK), l.gu.resize(c * 2 * F);
      l.r1.resize(c), l.r2.resize(c), l.rq.resize(c * (H + KV)),
          l.lse.resize(c * H);
      l.h1.resize(c * D), l.o.resize(c * D), l.h2.resize(c * D),
          l.act.resize(c * F);
    }
    x.resize(c * D), rf.resize(c), grad.resize(TOTAL), t1.resize(c * 2 * F),
        t2.resize(c * 2 * F), dx.resize(c * D);
    dqk.resize(c * QKV), logits.resize(c * V), hf.resize(c * D),
        b1.resize(c * V), v1.resize(c * V / 2), v2.resize(c * 2 * F / 2);
  }
  static void rms(const float* x, const float* g, int n, float* r, bf* out) {
    for (int i = 0; i < n; i++) {
      const float* a = x + long(i) * D;
      float q = 0;
      for (int j = 0; j < D; j++) q += a[j] * a[j];
      r[i] = 1 / std::sqrt(q / D + EPS);
      for (int j = 0; j < D; j++)
        out[long(i) * D + j] = to_bf(a[j] * r[i] * g[j]);
    }
  }
  // dx += backward of y = x r g
  static void rms_back(const float* x, const float* g, const float* r,
                       const float* dy, int n, float* dx, float* dg) {
    for (int i = 0; i < n; i++) {
      const float *a = x + long(i) * D, *d = dy + long(i) * D;
      float* o = dx + long(i) * D;
      float dot = 0, q = r[i];
      for (int j = 0; j < D; j++) {
        dg[j] += d[j] * a[j] * q;
        dot += d[j] * g[j] * a[j];
      }
      dot *= q * q / D;
      for (int j = 0; j < D; j++) o[j] += q * (d[j] * g[j] - a[j] * dot);
    }
  }
  // y[n x rows] = h * W^T
  void linear(int p, const bf* h, float* y, bool add = false) {
    gemm(n, P[p].rows, P[p].cols / 2, (const u32*)h, P[p].cols / 2, 1,
         P[p].fwd.data(), y, P[p].rows, add);
  }
  // dh[m x cols] = dy W ; dW += dy^T h
  void linear_back(int p, int m, const float* dy, const bf* h, float* dh,
                   bool add = false) {
    int r = P[p].rows, c = P[p].cols;
    to_rows(dy, long(m) * r, b1.data());
    if (dh)
      gemm(m, c, r / 2, (const u32*)b1.data(), r / 2, 1, P[p].bwd.data(), dh, c,
           add);
    interleave(b1.data(), m, r, v1.data());
    pack_rows(h, m, c, v2.data());
    for (int k0 = 0; k0 < m / 2;
         k0 += 192) {  // blocks of the summed tokens that stay in the cache
      int kb = std::min(192, m / 2 - k0);
      for (int j = 0; j < c; j += 32)
        for (int i = 0; i < r; i += 14)
          tile_n(std::min(14, r - i), v1.data() + long(k0) * r + i, 1, r,
                 v2.data() + (long(j / 32) * (m / 2) + k0) * 32, kb,
                 grad.data() + P[p].at + long(i) * c + j, c, true);
    }
  }
  void load(const vector<const Doc*>& docs) {
    start.assign(1, 0), ids.clear(), target.clear(), pos.clear();
    for (auto d : docs) {
      int k = int(d->ids.size());
      for (int i = 0; i < k; i++) {
        ids.push_back(d->ids[i]);
        target.push_back(i + 1 < k && d->loss[i + 1] ? d->ids[i + 1] : -1);
      }
      start.push_back(int(ids.size()));
    }
    if (ids.size() % 2)
      ids.push_back(0), target.push_back(-1), start.push_back(int(ids.size()));
    n = int(ids.size());
    for (int i = 0; i < n; i++)
      if (target[i] >= 0) pos.push_back(i);
    count = int(pos.size());
  }
  void forward() {
    for (int i = 0; i < n; i++)
      memcpy(&x[long(i) * D], w(P_EMBD) + long(ids[i]) * D, D * 4);
    for (int l = 0; l < NL; l++) {
      Saved& a = s[l];
      const LayerAt& L = LA[l];
      memcpy(a.x.data(), x.data(), long(n) * D * 4);
      rms(x.data(), w(L.attn_norm), n, a.r1.data(), a.h1.data());
      linear(L.qkv, a.h1.data(), a.qkv.data());
      attention(a, w(L.q_norm), w(L.k_norm));
      linear(L.out, a.o.data(), x.data(), true);
      memcpy(a.mid.data(), x.data(), long(n) * D * 4);
      rms(x.data(), w(L.ffn_norm), n, a.r2.data(), a.h2.data());
      linear(L.gate_up, a.h2.data(), a.gu.data());
      for (int i = 0; i < n; i++) {
        const float* g = &a.gu[long(i) * 2 * F];
        for (int j = 0; j < F; j++)
          a.act[long(i) * F + j] =
              to_bf(g[j] / (1 + std::exp(-g[j])) * g[F + j]);
      }
      linear(L.down, a.act.data(), x.data(), true);
    }
    // only the rows that have a loss go through the head
    vector<float>& c = t2;
    for (int i = 0; i < count; i++)
      memcpy(&c[long(i) * D], &x[long(pos[i]) * D], D * 4);
    if (count % 2) memset(&c[long(count) * D], 0, D * 4);
    rms(c.data(), w(P_FINAL), count + count % 2, rf.data(), hf.data());
    gemm(count, V, D / 2, (const u32*)hf.data(), D / 2, 1, P[P_EMBD].fwd.data(),
         logits.data(), V, false);
    loss = 0;
  }
  void norm_rope(const float* in, const float* g, int p, float* r, float* out) {
    float q = 0, y[E];
    for (int j = 0; j < E; j++) q += in[j] * in[j];
    *r = 1 / std::sqrt(q / E + EPS);
    for (int j = 0; j < E; j++) y[j] = in[j] * *r * g[j];
    const float *c = &COS[p * E / 2], *z = &SIN[p * E / 2];
    for (int j = 0; j < E / 2; j++) {
      out[j] = y[j] * c[j] - y[j + E / 2] * z[j];
      out[j + E / 2] = y[j + E / 2] * c[j] + y[j] * z[j];
    }
  }
  void attention(Saved& a, const float* gq, const float* gk) {
    const float scale = 1 / std::sqrt(float(E));
    float p[2048];
    for (size_t d = 0; d + 1 < start.size(); d++) {
      int b = start[d], k = start[d + 1] - b;
      for (int i = 0; i < k; i++)
        for (int h = 0; h < H + KV; h++)
          norm_rope(&a.qkv[long(b + i) * QKV + h * E], h < H ? gq : gk, i,
                    &a.rq[(b + i) * (H + KV) + h],
                    &a.qk[long(b + i) * QK + h * E]);
      for (int h = 0; h < H; h++) {
        const float* kk = &a.qk[long(b) * QK + (H + h / (H / KV)) * E];
        const float* vv = &a.qkv[long(b) * QKV + QK + h / (H / KV) * E];
        for (int i = 0; i < k; i++) {
          const float* q = &a.qk[long(b + i) * QK + h * E];
          float top = -1e30f, sum = 0, o[E] = {};
          for (int j = 0; j <= i; j++) {
            float t = 0;
            for (int e = 0; e < E; e++) t += q[e] * kk[long(j) * QK + e];
            p[j] = t * scale;
            top = std::max(top, p[j]);
          }
          for (int j = 0; j <= i; j++) p[j] = std::exp(p[j] - top), sum += p[j];
          for (int j = 0; j <= i; j++)
            for (int e = 0; e < E; e++) o[e] += p[j] * vv[long(j) * QKV + e];
          a.lse[(b + i) * H + h] = top + std::log(sum);
          for (int e = 0; e < E; e++)
            a.o[long(b + i) * D + h * E + e] = to_bf(o[e] / sum);
        }
      }
    }
  }
  // d_o in t1 [n x D]; writes dqkv into dqk [n x QKV]
  void attention_back(const Saved& a, const float* gq, const float* gk,
                      float* dgq, float* dgk) {
    const float scale = 1 / std::sqrt(float(E));
    std::fill(dqk.begin(), dqk.begin() + long(n) * QKV, 0.f);
    float p[2048], dp[2048];
    for (size_t d = 0; d + 1 < start.size(); d++) {
      int b = start[d], k = start[d + 1] - b;
      for (int h = 0; h < H; h++) {
        int kvh = h / (H / KV);
        const float* kk = &a.qk[long(b) * QK + (H + kvh) * E];
        const float* vv = &a.qkv[long(b) * QKV + QK + kvh * E];
        float *dk = &dqk[long(b) * QKV + (H + kvh) * E],
              *dv = &dqk[long(b) * QKV + QK + kvh * E];
        for (int i = 0; i < k; i++) {
          const float *q = &a.qk[long(b + i) * QK + h * E],
                      *go = &t1[long(b + i) * D + h * E];
          float dot = 0, dq[E] = {}, lse = a.lse[(b + i) * H + h];
          for (int j = 0; j <= i; j++) {
            float t = 0, u = 0;
            for (int e = 0; e < E; e++)
              t += q[e] * kk[long(j) * QK + e],
                  u += go[e] * vv[long(j) * QKV + e];
            p[j] = t * scale - lse;
            dp[j] = u;
          }
          for (int j = 0; j <= i; j++)
            p[j] = std::exp(p[j]), dot += p[j] * dp[j];
          for (int j = 0; j <= i; j++) {
            float g = p[j] * (dp[j] - dot) * scale, pj = p[j];
            for (int e = 0; e < E; e++) {
              dv[long(j) * QKV + e] += pj * go[e];
              dk[long(j) * QKV + e] += g * q[e];
              dq[e] += g * kk[long(j) * QK + e];
            }
          }
          memcpy(&dqk[long(b + i) * QKV + h * E], dq, sizeof dq);
        }
      }
      for (int i = 0; i < k; i++)  // back through rope and the q/k norms
        for (int h = 0; h < H + KV; h++) {
          float *g = &dqk[long(b + i) * QKV + h * E], y[E], dot = 0,
                r = a.rq[(b + i) * (H + KV) + h];
          const float *in = &a.qkv[long(b + i) * QKV + h * E],
                      *gain = h < H ? gq : gk;
          float* dg = h < H ? dgq : dgk;
          const float *c = &COS[i * E / 2], *z = &SIN[i * E / 2];
          for (int j = 0; j < E / 2; j++) {
            y[j] = g[j] * c[j] + g[j + E / 2] * z[j];
            y[j + E / 2] = g[j + E / 2] * c[j] - g[j] * z[j];
          }
          for (int j = 0; j < E; j++)
            dg[j] += y[j] * in[j] * r, dot += y[j] * gain[j] * in[j];
          dot *= r * r / E;
          for (int j = 0; j < E; j++) g[j] = r * (y[j] * gain[j] - in[j] * dot);
        }
    }
  }
  // total: number of loss tokens of all workers
  void backward(int total) {
    std::fill(grad.begin(), grad.end(), 0.f);
    float* G = grad.data();
    int m = count + count % 2;
    for (int i = 0; i < count; i++) {
      float *z = &logits[long(i) * V], top = z[0], sum = 0;
      for (int j = 1; j < V; j++) top = std::max(top, z[j]);
      float right = z[target[pos[i]]];
      for (int j = 0; j < V; j++) z[j] = std::exp(z[j] - top), sum += z[j];
      loss += std::log(sum) + top - right;
      float k = 1 / (sum * total);
      for (int j = 0; j < V; j++) z[j] *= k;
      z[target[pos[i]]] -= 1.f / total;
    }
    if (m > count) memset(&logits[long(count) * V], 0, V * 4);
    linear_back(P_EMBD, m, logits.data(), hf.data(), t1.data());
    // rows of x that went through the head are still in t2
    std::fill(dx.begin(), dx.begin() + long(n) * D, 0.f);
    {
      vector<float> part(long(m) * D, 0.f);
      rms_back(t2.data(), w(P_FINAL), rf.data(), t1.data(), count, part.data(),
               G + P[P_FINAL].at);
      for (int i = 0; i < count; i++)
        memcpy(&dx[long(pos[i]) * D], &part[long(i) * D], D * 4);
    }
    for (int l = NL - 1; l >= 0; l--) {
      Saved& a = s[l];
      const LayerAt& L = LA[l];
      linear_back(L.down, n, dx.data(), a.act.data(), t1.data());
      for (int i = 0; i < n; i++) {
        const float *g = &a.gu[long(i) * 2 * F], *d = &t1[long(i) * F];
        float* o = &t2[long(i) * 2 * F];
        for (int j = 0; j < F; j++) {
          float sg = 1 / (1 + std::exp(-g[j]));
          o[j] = d[j] * g[F + j] * sg * (1 + g[j] * (1 - sg));
          o[F + j] = d[j] * g[j] * sg;
        }
      }
      linear_back(L.gate_up, n, t2.data(), a.h2.data(), t1.data());
      rms_back(a.mid.data(), w(L.ffn_norm), a.r2.data(), t1.data(), n,
               dx.data(), G + P[L.ffn_norm].at);
      linear_back(L.out, n, dx.data(), a.o.data(), t1.data());
      attention_back(a, w(L.q_norm), w(L.k_norm), G + P[L.q_norm].at,
                     G + P[L.k_norm].at);
      linear_back(L.qkv, n, dqk.data(), a.h1.data(), t1.data());
      rms_back(a.x.data(), w(L.attn_norm), a.r1.data(), t1.data(), n, dx.data(),
               G + P[L.attn_norm].at);
    }
    for (int i = 0; i < n; i++)
      for (int j = 0; j < D; j++)
        G[P[P_EMBD].at + long(ids[i]) * D + j] += dx[long(i) * D + j];
  }
};

#endif  // FUCINA_MODELS_RECIPE_DENSE_MODEL_H_
