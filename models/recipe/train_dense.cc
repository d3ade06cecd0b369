// Trains the atlas model (qwen3, dense) on CPUs with AVX-512 BF16.
//
//   g++ -std=c++20 -Ofast -march=native -pthread train_dense.cc -o train
//   train DATA OUT MINUTES [layers=6] [init=FILE] [muon=0.02] [adam=0.004]
//   [decay=0.02] [ns=5] [tokens=2560] [scale=1] [skip=0] train DATA OUT check
//   init=FILE      one batch: writes loss and gradients to OUT train DATA OUT
//   eval init=FILE       OUT: a byte for each document, 1 = every token with a
//   loss is the most likely one,
//                                       that is, greedy decoding from the
//                                       document's prompt writes exactly this
//                                       answer
//
// DATA (from gen_data.py): u32 documents; then per document u32 length, length
// x u16 ids, length x u8 "has loss". OUT and init: all parameters as float32,
// in the order of make_layout(). Two threads; each takes half of a batch. The
// learning rate stays constant until a file OUT.decay appears; it holds the
// minutes over which the rate then falls to zero; a new number there starts a
// new decay from the present rate. After MINUTES the decay begins by itself and
// takes a fifth of MINUTES. A file OUT.stop ends the run at once. Products run
// in bf16 (f32 sums), the rest in f32. Matrices are updated by Muon, embedding
// and gains by AdamW.
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dense_model.h"
#include "muon.h"

int main(int argc, char** argv) {
  if (argc < 4)
    return fprintf(stderr,
                   "usage: train DATA OUT MINUTES|check [key=value...]\n"),
           2;
  std::map<std::string, std::string> opt;
  for (int i = 4; i < argc; i++) {
    std::string s = argv[i];
    opt[s.substr(0, s.find('='))] = s.substr(s.find('=') + 1);
  }
  auto num = [&](const char* k, double v) {
    return opt.count(k) ? atof(opt[k].c_str()) : v;
  };
  bool check = !strcmp(argv[3], "check");
  const double minutes = atof(argv[3]);
  const float muon = num("muon", 0.02), adam = num("adam", 0.004),
              decay = num("decay", 0.02), gain = num("scale", 1);
  const int tokens = int(num("tokens", 2560)), warmup = int(num("warmup", 30));
  NL = int(num("layers", MAXL));
  const int steps = int(num("ns", 5));  // Newton-Schulz iterations
  make_layout();
  W.resize(TOTAL);
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  for (auto& p : P)
    for (long i = 0; i < long(p.rows) * std::max(1, p.cols); i++) {
      bool small = p.name.ends_with(".out") || p.name.ends_with("down");
      W[p.at + i] =
          p.cols ? normal(rng) * (small ? 0.04f / std::sqrt(2.f * MAXL) : 0.04f)
                 : 1.f;
    }
  if (opt.count("init")) {
    std::ifstream f(opt["init"], std::ios::binary);
    if (!f.read((char*)W.data(), TOTAL * 4))
      return fprintf(stderr, "bad init file\n"), 1;
  }
  for (int p = 0; p < MAXPOS; p++)
    for (int j = 0; j < E / 2; j++) {
      double a = p * std::pow(double(THETA), -2.0 * j / E);
      COS[p * E / 2 + j] = float(std::cos(a)),
                      SIN[p * E / 2 + j] = float(std::sin(a));
    }
  vector<Doc> docs;
  {
    std::ifstream f(argv[1], std::ios::binary);
    u32 n = 0, k = 0;
    f.read((char*)&n, 4);
    for (u32 i = 0; i < n && f.read((char*)&k, 4); i++) {
      Doc d;
      d.ids.resize(k), d.loss.resize(k);
      f.read((char*)d.ids.data(), k * 2), f.read((char*)d.loss.data(), k);
      if (k <= 600) docs.push_back(std::move(d));
    }
  }
  size_t cursor = size_t(num("skip", 0)) % docs.size();
  auto fill = [&](Worker& a) {
    vector<const Doc*> b;
    int n = 0;
    while (n < tokens) {
      const Doc* d = &docs[cursor];
      cursor = (cursor + 1) % docs.size();
      b.push_back(d), n += int(d->ids.size());
    }
    a.load(b);
  };
  vector<Worker> work(THREADS);
  for (auto& a : work) a.init(tokens);
  if (!strcmp(argv[3], "eval")) {
    for (auto& p : P)
      if (p.cols) pack_fwd(W.data() + p.at, p.rows, p.cols, p.fwd.data());
    vector<char> right(docs.size(), 1);
    vector<std::thread> threads;
    for (int t = 0; t < THREADS; t++)
      threads.emplace_back([&, t] {
        Worker& a = work[t];
        for (size_t from = t * docs.size() / THREADS,
                    end = (t + 1) * docs.size() / THREADS;
             from < end;) {
          vector<const Doc*> b;
          vector<size_t> of;
          for (int n = 0; from < end && n < tokens; from++) {
            b.push_back(&docs[from]), n += int(docs[from].ids.size());
            of.insert(of.end(), docs[from].ids.size(), from);
          }
          a.load(b);
          a.forward();
          for (int i = 0; i < a.count; i++) {
            const float* z = &a.logits[long(i) * V];
            if (std::max_element(z, z + V) - z != a.target[a.pos[i]])
              right[of[a.pos[i]]] = 0;
          }
        }
      });
    for (auto& t : threads) t.join();
    std::ofstream(argv[2], std::ios::binary)
        .write(right.data(), long(right.size()));
    return 0;
  }
  printf("%ld parameters, %zu documents\n", TOTAL, docs.size());

  // every thread owns a part of the parameters: it packs and updates them
  vector<int> owner(P.size());
  {
    long load[THREADS] = {};
    vector<int> order(P.size());
    for (size_t i = 0; i < P.size(); i++) order[i] = int(i);
    std::stable_sort(order.begin(), order.end(), [](int a, int b) {
      return P[a].rows * std::max(1, P[a].cols) >
             P[b].rows * std::max(1, P[b].cols);
    });
    for (int i : order) {
      int t = int(std::min_element(load, load + THREADS) - load);
      owner[i] = t, load[t] += long(P[i].rows) * std::max(1, P[i].cols);
    }
  }
  vector<float> m1(TOTAL), m2(TOTAL);
  std::barrier sync(THREADS);
  double progress = 0, decay_from = 0, decay_asked = 0, decay_peak = 1,
         decay_len = minutes * 12, seen = 0, log_loss = 0, log_n = 0;
  int step = 0;
  auto now = [] {
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  const double begin = now();
  double saved = begin;
  auto save = [&] {
    std::string tmp = std::string(argv[2]) + ".tmp";
    std::ofstream(tmp, std::ios::binary).write((char*)W.data(), TOTAL * 4);
    std::filesystem::rename(tmp, argv[2]);
  };
  auto run = [&](int t) {
    Worker& a = work[t];
    while (true) {
      for (size_t i = 0; i < P.size(); i++)
        if (owner[i] == t && P[i].cols) {
          pack_fwd(w(int(i)), P[i].rows, P[i].cols, P[i].fwd.data());
          pack_bwd(w(int(i)), P[i].rows, P[i].cols, P[i].bwd.data());
        }
      if (t == 0) {
        double t0 = now(), m = 0;
        if (!check && std::ifstream(std::string(argv[2]) + ".decay") >> m &&
            m != decay_asked)
          decay_peak *= 1 - progress, decay_asked = m, decay_len = m * 60,
                                      decay_from = t0;
        else if (!check && !decay_from && now() - begin > minutes * 60)
          decay_from = t0;
        progress = decay_from ? (t0 - decay_from) / decay_len : 0;
        if (std::filesystem::exists(std::string(argv[2]) + ".stop"))
          progress = 1;
        for (auto& b : work) fill(b);
      }
      sync.arrive_and_wait();
      if (progress >= 1) break;
      int total = 0;
      for (auto& b : work) total += b.count;
      a.forward();
      a.backward(total);
      sync.arrive_and_wait();
      if (check) break;
      float scale = gain * float(decay_peak * (1 - progress)) *
                    std::min(1.f, float(step + 1) / warmup);
      double b1 = 1 - std::pow(0.9, step + 1),
             b2 = 1 - std::pow(0.95, step + 1);
      for (size_t i = 0; i < P.size(); i++) {
        if (owner[i] != t) continue;
        Param& p = P[i];
        long n = long(p.rows) * std::max(1, p.cols);
        float *x = &W[p.at], *m = &m1[p.at], *v = &m2[p.at];
        const float *g0 = &work[0].grad[p.at], *g1 = &work[1].grad[p.at];
        if (!p.blocks.empty()) {
          for (auto [r0, r1] : p.blocks) {
            long from = long(r0) * p.cols, k = long(r1 - r0) * p.cols;
            vector<float> u(k);
            for (long j = 0; j < k; j++) {
              float g = g0[from + j] + g1[from + j];
              m[from + j] = 0.95f * m[from + j] + 0.05f * g;
              u[j] = 0.05f * g + 0.95f * m[from + j];
            }
            orthogonal(u, r1 - r0, p.cols, steps);
            float lr = muon * scale,
                  f = lr * std::sqrt(std::max(1.f, float(r1 - r0) / p.cols));
            for (long j = 0; j < k; j++)
              x[from + j] = x[from + j] * (1 - lr * decay) - f * u[j];
          }
        } else {
          float lr = adam * scale;
          for (long j = 0; j < n; j++) {
            float g = g0[j] + g1[j];
            m[j] = 0.9f * m[j] + 0.1f * g;
            v[j] = 0.95f * v[j] + 0.05f * g * g;
            x[j] -=
                lr * float(m[j] / b1) / (std::sqrt(float(v[j] / b2)) + 1e-10f);
          }
        }
      }
      if (t == 0) {
        for (auto& b : work) log_loss += b.loss, log_n += b.count, seen += b.n;
        if (++step % 20 == 0 || step == 1) {
          printf(
              "step %d loss %.4f progress %.3f lr %.3f %.3f M tokens %.0f "
              "tok/s\n",
              step, log_loss / log_n, progress, scale, seen / 1e6,
              seen / (now() - begin));
          fflush(stdout);
          log_loss = log_n = 0;
        }
        if (now() - saved > 60) save(), saved = now();
      }
      sync.arrive_and_wait();
    }
  };
  vector<std::thread> threads;
  for (int t = 0; t < THREADS; t++) threads.emplace_back(run, t);
  for (auto& t : threads) t.join();
  if (check) {
    std::ofstream f(argv[2], std::ios::binary);
    float l =
        float((work[0].loss + work[1].loss) / (work[0].count + work[1].count));
    f.write((char*)&l, 4);
    for (long i = 0; i < TOTAL; i++) {
      float g = work[0].grad[i] + work[1].grad[i];
      f.write((char*)&g, 4);
    }
    printf("loss %.6f, %d + %d tokens\n", l, work[0].n, work[1].n);
    return 0;
  }
  save();
  printf("done: %d steps, %.0f tokens, %.0f s\n", step, seen, now() - begin);
}
