// The weights of a few events that overlap: an active-set method for a quadratic function of at most CLUSTER weights.
#pragma once
#include "events.h"
#include "simd.h"

namespace {

constexpr int CLUSTER = 32;

// Minimises 1/2 x'Gx - b'x + penalty sum |x_p| from a feasible x, over x of any sign, or (`positive`) x >= 0.
//
// r = b - Gx follows x. `free`: there is no penalty and no sign, so one solution suffices. A weight whose column of G
// depends on those before it stays as it is.
struct LocalProblem {
    int n = 0;
    bool free = false, positive = false;
    double penalty = 0;
    double G[CLUSTER][CLUSTER], x[CLUSTER], r[CLUSTER], tolerance[CLUSTER];

    void solve() {
        for (int p = 0; p < n; ++p) {
            sign[p] = x[p] < 0 ? -1 : 1;
            active[p] = free || x[p] != 0;
            refused[p] = false;
        }
        for (int turn = 0; turn < 8 * CLUSTER; ++turn) {
            const int blocked = move();
            if (blocked >= 0) continue;
            const int entering = free ? -1 : worst_zero();
            if (entering < 0) return;
            active[entering] = true;
            sign[entering] = positive || r[entering] > 0 ? 1 : -1;
        }
    }

  private:
    bool active[CLUSTER], refused[CLUSTER];
    double sign[CLUSTER], L[CLUSTER][CLUSTER], step[CLUSTER];

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
            for (int q = 0; q < n; ++q)
                if (active[q]) r[p] -= length * G[p][q] * step[q];
        for (int p = 0; p < n; ++p)
            if (active[p]) x[p] += length * step[p];
        if (blocked < 0) return -1;
        refused[blocked] |= length == 0;  // it would go the wrong way, by rounding
        active[blocked] = false;
        r_at_zero(blocked);
        return blocked;
    }

    void r_at_zero(int p) {
        for (int q = 0; q < n; ++q) r[q] += G[q][p] * x[p];
        x[p] = 0;
    }

    // G step = slopes on the active weights, by a Cholesky factor.
    void newton_step() {
        for (int p = 0; p < n; ++p) {
            step[p] = 0;
            if (!active[p]) continue;
            double slope = r[p] - penalty * sign[p];
            for (int q = 0; q <= p; ++q) {
                if (!active[q]) continue;
                double sum = G[p][q];
                for (int k = 0; k < q; ++k)
                    if (active[k]) sum -= L[p][k] * L[q][k];
                if (q < p) slope -= (L[p][q] = sum / L[q][q]) * step[q];
                else L[p][p] = sum > 1e-12 * G[p][p] ? std::sqrt(sum) : INFINITY;
            }
            step[p] = slope / L[p][p];
        }
        for (int p = n - 1; p >= 0; --p) {
            if (!active[p]) continue;
            for (int k = p + 1; k < n; ++k)
                if (active[k]) step[p] -= L[k][p] * step[k];
            step[p] /= L[p][p];
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
