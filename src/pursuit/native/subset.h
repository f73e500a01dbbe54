// One node of the search for the best subset of columns, and what its relaxation proves.
//
// f(b) = constant - c'b + b'Hb / 2, d >= 0 with Q = H - diag(d) positive semidefinite, and |b_j| <= M_j. Some columns are
// in, some are out, and m of the free ones may be used. For every u, with w = c - Qu,
//     f(b) >= constant - u'Qu / 2 - (sum of psi_j(w_j) over the columns in) - (sum of the m largest over the free ones),
//     psi_j(w) = max over |t| <= M_j of w t - d_j t^2 / 2,
// since b'Qb / 2 >= u'Qb - u'Qu / 2. A good u minimises the relaxation, in which a free column has the cost
//     phi(b_j) = min over z of d_j b_j^2 / 2z + mu z  with  |b_j| <= M_j z,  z <= 1,
// mu being the price at which z sums to m: coordinate descent on the columns with b_j != 0, prices corrected in between.
// Rounding: w_j is in error by at most noise root_j S, u'Qu by at most 2 noise S^2, with S = |y| + sum |u_i| root_i, and |y| = 1.
#pragma once
#include "kernels.h"
#include "simd.h"

namespace {

constexpr double NOWHERE = -1e300;
constexpr int8_t FREE = 0, IN = 1, OUT = -1, LARGEST = 2;  // largest: |b_j| / M_j = 1, and b_j is at its start

// The `count` largest of some numbers, in decreasing order.
struct Top {
    Array<double> values;
    int wanted, found = 0;

    explicit Top(int wanted) : values(wanted + 1), wanted(wanted) {}
    void clear() { found = 0; }
    void put(double v) {
        if (found == wanted && !(v > values[wanted - 1])) return;
        int i = found < wanted ? found++ : wanted - 1;
        for (; i > 0 && values[i - 1] < v; --i) values[i] = values[i - 1];
        values[i] = v;
    }
    double sum(int count) const {
        double s = 0;
        for (int i = 0; i < count && i < found; ++i) s += values[i];
        return s;
    }
};

class Relaxing {
    const Quadratic &f;
    Relaxation &r;
    const int p;
    Array<double> w, psi, QA, bA, wA, old;
    Array<int32_t> active;
    Array<int8_t> is_active;
    int s = 0;
    size_t room = 0;
    double mu;
    Top top;

    bool counts(int j) const { return r.state[j] == FREE; }
    double slope(int j) const { return f.positive ? w[j] : std::fabs(w[j]); }

    // psi_j at a w that is larger by the rounding error.
    double bound(int j, double error) const {
        double v = slope(j) + error * f.root[j];
        v = v > 0 ? v : 0;
        return v <= f.d[j] * f.M[j] ? v * v / (2 * f.d[j]) : v * f.M[j] - f.d[j] * f.M[j] * f.M[j] / 2;
    }
    // Where |w_j| is below this, b_j = 0 at the price mu.
    double threshold(int j) const {
        const double reach = f.d[j] * f.M[j];
        return reach * f.M[j] >= 2 * mu ? std::sqrt(2 * f.d[j] * mu) : reach / 2 + mu / f.M[j];
    }
    // How much of column j is used: z.
    double share(int j) const {
        const double a = std::fabs(r.b[j]);
        const double z = larger(a * std::sqrt(f.d[j] / (2 * mu)), a / f.M[j]);
        return z < 1 ? z : 1;
    }
    void enter(int j) { active[s++] = j, is_active[j] = 1; }

    void change(int j, double by) {  // of b_j, in w
        add(&w[0], -by, f.H + int64_t(j) * p, p);
        w[j] += f.d[j] * by;
    }

    void start() {
        const bool shared = r.w != nullptr;
        std::memcpy(&w[0], shared ? r.w : f.c, p * sizeof(double));
        for (int j = 0; j < p; ++j) {
            if (r.state[j] == OUT) r.b[j] = 0;
            const double by = r.b[j] - (shared ? r.shared[j] : 0.0);
            if (by != 0) change(j, by);
            if (r.state[j] != LARGEST && (r.state[j] == IN || r.b[j] != 0)) enter(j);
        }
    }

    // The bound at b; `used` is the sum of z.
    double prove(double *used) {
        double curved = 0, forced = 0, sum = 1;
        for (int j = 0; j < p; ++j) sum += std::fabs(r.b[j]) * f.root[j];
        const double error = f.noise * sum;
        bool is_cone = false;
        top.clear(), *used = 0;
        for (int j = 0; j < p; ++j) {
            psi[j] = 0;
            if (r.state[j] == OUT) continue;
            if (r.b[j] != 0) curved += r.b[j] * (f.c[j] - w[j]);
            if (r.state[j] == LARGEST) {
                psi[j] = w[j] * r.b[j] + error * f.root[j] * std::fabs(r.b[j]);
                forced += psi[j], is_cone = true;
                continue;
            }
            psi[j] = bound(j, error);
            if (r.state[j] == IN) forced += psi[j];
            else {
                top.put(psi[j]);
                if (r.b[j] != 0) *used += share(j);
            }
        }
        const double spent = forced + top.sum(r.m);
        if (is_cone && spent > 0) return NOWHERE;  // the bound would fall as all of b grows
        return f.constant - curved / 2 - spent - 2 * error * sum;
    }

    // Coordinate descent on the active columns, at the price mu.
    void descend(int sweeps) {
        if (size_t(s) > room) {
            room = size_t(s) + 16;
            QA.allocate(room * room), bA.allocate(room), wA.allocate(room), old.allocate(room);
        }
        for (int a = 0; a < s; ++a) {
            const double *h = f.H + int64_t(active[a]) * p;
            double *q = QA + size_t(a) * s;
            for (int e = 0; e < s; ++e) q[e] = h[active[e]];
            q[a] -= f.d[active[a]], bA[a] = old[a] = r.b[active[a]], wA[a] = w[active[a]];
        }
        for (int sweep = 0; sweep < sweeps; ++sweep) {
            double moved = 0, size = 0;
            for (int a = 0; a < s; ++a) {
                const double *q = QA + size_t(a) * s, v = minimiser(active[a], q[a], wA[a] + q[a] * bA[a]);
                const double by = v - bA[a];
                if (by != 0) {
                    add(&wA[0], -by, q, s);
                    bA[a] = v;
                    moved += q[a] * by * by;
                }
                size += q[a] * v * v;
            }
            if (!(moved > 1e-8 * size)) break;
        }
        int kept = 0;
        for (int a = 0; a < s; ++a) {
            const int j = active[a];
            r.b[j] = bA[a];
            if (bA[a] != old[a]) change(j, bA[a] - old[a]);
            if (r.state[j] == IN || bA[a] != 0) active[kept++] = j;
            else is_active[j] = 0;
        }
        s = kept;
    }
    // argmin over t of q t^2 / 2 - v t + (d t^2 / 2 of a column in, phi(t) of a free one).
    double minimiser(int j, double q, double v) const {
        const double size = f.positive ? v : std::fabs(v), d = f.d[j];
        double t;
        if (r.state[j] == IN) t = size / (q + d);
        else {
            const double low = threshold(j);
            if (!(size > low)) return 0;
            t = (size - low) / q;
            if (d * f.M[j] * f.M[j] >= 2 * mu && t > std::sqrt(2 * mu / d)) t = size / (q + d);
        }
        if (!(t > 0)) return 0;
        t = smaller(t, f.M[j]);
        return v < 0 ? -t : t;
    }

    // Columns that no subset better than the cut has, or that each such subset has.
    void screen() {
        top.clear();
        int free = 0;
        for (int j = 0; j < p; ++j)
            if (counts(j)) top.put(r.psi[j]), ++free;
        r.branch = -1;
        double most = -1;
        const double last = r.m > 0 && free > r.m ? top.values[r.m - 1] : 0, next = free > r.m ? top.values[r.m] : 0;
        for (int j = 0; j < p; ++j) {
            r.screened[j] = r.state[j];
            if (!counts(j)) continue;
            if (r.m > 0 && free > r.m) {
                if (r.psi[j] < last && r.bound + last - r.psi[j] >= r.cut) r.screened[j] = OUT;
                else if (r.psi[j] >= last && r.bound + r.psi[j] - next >= r.cut) r.screened[j] = IN;
            }
            const double size = std::fabs(r.best[j]);
            if (r.screened[j] == FREE && size > most) most = size, r.branch = j;
        }
    }

  public:
    Relaxing(const Quadratic &f, Relaxation &r)
        : f(f), r(r), p(f.p), w(p), psi(p), active(p), is_active(p), mu(r.mu), top(r.m + 1) {}

    void run() {
        start();
        r.bound = NOWHERE;
        double before = NOWHERE, used;
        int stalled = 0;
        for (r.rounds = 0;; ++r.rounds) {
            const double now = prove(&used);
            if (now > r.bound || r.rounds == 0) {
                r.bound = now;
                std::memcpy(r.psi, &psi[0], p * sizeof(double));
                std::memcpy(r.best, r.b, p * sizeof(double));
            }
            if (r.bound >= r.cut || r.rounds == r.limit) break;
            const bool balanced = std::fabs(used - r.m) < 0.05 * r.m || r.m == 0;
            if (r.rounds > 2) {
                stalled = balanced && r.bound - before < r.tolerance * (r.cut - r.bound) ? stalled + 1 : 0;
                if (stalled >= 3) break;
            }
            before = r.bound;
            if (r.m == 0) mu = 1e300;
            else if (!(mu > 0)) mu = top.found >= r.m && top.values[r.m - 1] > 0 ? top.values[r.m - 1] : 1e-300;
            else if (r.rounds > 0) mu *= larger(0.3, smaller(3.0, used / r.m));
            for (int j = 0; r.m > 0 && j < p; ++j)
                if (counts(j) && !is_active[j] && slope(j) > threshold(j)) enter(j);
            descend(r.sweeps);
        }
        r.mu = mu;
        screen();
    }
};

void relax_subset(const Quadratic &f, Relaxation &r) { Relaxing(f, r).run(); }

}  // namespace
