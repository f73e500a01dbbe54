// The weights of events that overlap: an active-set method for a quadratic function of some weights.
#pragma once
#include "events.h"
#include "simd.h"

namespace {

constexpr int CLUSTER = 32, LARGEST_CLUSTER = 1024;

// Minimises 1/2 x'Gx - b'x + penalty sum |x_p| from a feasible x, over x of any sign, or (`positive`) x >= 0.
//
// r = b - Gx follows x. `free`: there is no penalty and no sign, so one solution suffices. A weight whose column of
// G depends on those before it stays as it is. Row p of G, and of its Cholesky factor, begins at column first[p]: events
// overlap only their neighbours.
struct LocalProblem {
    int n = 0;
    bool free = false, positive = false;
    double penalty = 0, dependent = 1e-12;  // a pivot below this fraction of its diagonal entry is none
    Array<double> x, r, tolerance;

    void begin(int count) {
        n = count;
        if (size_t(n) > x.size())
            for (Array<double> *v : {&x, &r, &tolerance, &sign, &step}) v->allocate(size_t(n));
        if (size_t(n) * n > G.size())
            for (Array<double> *v : {&G, &L}) v->allocate(size_t(n) * n);
        if (size_t(n) > first.size())
            for (Array<int> *v : {&first, &active, &refused}) v->allocate(size_t(n));
        std::memset(G, 0, size_t(n) * n * sizeof(double));
        for (int p = 0; p < n; ++p) first[p] = p;
    }

    void connect(int p, int q, double product) {  // q <= p
        G[p * n + q] = product;
        first[p] = smaller(first[p], q);
    }

    void solve() {
        for (int p = 0; p < n; ++p) {
            sign[p] = x[p] < 0 ? -1 : 1;
            active[p] = free || x[p] != 0;
            refused[p] = false;
        }
        for (int turn = 0; turn < 8 * n; ++turn) {
            const int blocked = move();
            if (blocked >= 0) continue;
            const int entering = free ? -1 : worst_zero();
            if (entering < 0) return;
            active[entering] = true;
            sign[entering] = positive || r[entering] > 0 ? 1 : -1;
        }
    }

  private:
    Array<double> G, L, sign, step;
    Array<int> first, active, refused;

    // Goes to the minimum over the active weights, or to the first point on the way where one of them becomes 0. Returns
    // that weight, or -1.
    int move() {
        newton_step();
        double length = 1;
        int blocked = -1;
        for (int p = 0; !free && p < n; ++p)
            if (active[p] && (x[p] + step[p]) * sign[p] < 0 && -x[p] / step[p] < length) {
                length = -x[p] / step[p];
                blocked = p;
            }
        for (int p = 0; p < n; ++p)
            if (active[p]) change(p, length * step[p]);
        if (blocked < 0) return -1;
        refused[blocked] |= length == 0;  // it would go the wrong way, by rounding
        active[blocked] = false;
        change(blocked, -x[blocked]);
        return blocked;
    }

    void change(int p, double by) {
        x[p] += by;
        for (int q = first[p]; q < p; ++q) r[q] -= G[p * n + q] * by;
        for (int q = p; q < n; ++q) r[q] -= G[q * n + p] * by;
    }

    // G step = slopes on the active weights, by a Cholesky factor.
    void newton_step() {
        for (int p = 0; p < n; ++p) {
            step[p] = 0;
            if (!active[p]) continue;
            double slope = r[p] - penalty * sign[p], *row = L + p * n;
            for (int q = first[p]; q <= p; ++q) {
                const int from = larger(first[p], first[q]);
                const double sum = G[p * n + q] - (active[q] ? dot(row + from, L + q * n + from, q - from) : 0);
                if (q == p) row[p] = sum > dependent * G[p * n + p] ? std::sqrt(sum) : INFINITY;
                else slope -= (row[q] = active[q] ? sum / L[q * n + q] : 0) * step[q];
            }
            step[p] = slope / row[p];
        }
        for (int p = n - 1; p >= 0; --p) {
            if (!active[p]) continue;
            step[p] /= L[p * n + p];
            for (int k = first[p]; k < p; ++k) step[k] -= L[p * n + k] * step[p];
        }
    }

    int worst_zero() const {
        int worst = -1;
        double most = 0;
        for (int p = 0; p < n; ++p) {
            const double excess = (positive ? r[p] : std::fabs(r[p])) - penalty;
            if (active[p] || refused[p] || !(excess > tolerance[p]) || excess <= most) continue;
            most = excess;
            worst = p;
        }
        return worst;
    }
};

// An array that grows; its entries are plain structures.
template <class E> class List {
    E *items = nullptr;
    int64_t capacity = 0;

  public:
    int64_t count = 0;
    List() = default;
    List(const List &) = delete;
    ~List() { std::free(items); }
    E &operator[](int64_t i) { return items[i]; }
    const E &operator[](int64_t i) const { return items[i]; }
    void push(const E &item) {
        if (count == capacity) {
            const int64_t more = 2 * capacity + 64;
            E *grown = static_cast<E *>(std::realloc(items, size_t(more) * sizeof(E)));
            if (!grown) throw std::bad_alloc();
            items = grown;
            capacity = more;
        }
        items[count++] = item;
    }
};

}  // namespace
