// OMP or OLS of one signal on a large dictionary, from its residual and the 8-bit copy of the dictionary (screen.h).
//
// A turn asks which atom correlates best with the residual r. The copy proves that it is one of a few, which are then
// compared by products in full precision. Threads share the columns. All arithmetic is in float64.
//
// OLS asks for the largest c_j^2 / v_j, with v_j = |a_j|^2 - sum_i <q_i, a_j>^2 for an orthonormal basis q_i of the
// active atoms. The copy encloses <q_i, a_j> as it does c_j = <a_j, r>, for one more direction a turn, and the squares
// add up to bounds of v_j. Atoms whose upper bound reaches the largest lower bound are compared in full precision, with
// the directions that came since they last were; their bounds are exact then.
//
// Where the copy leaves more than a tenth of the atoms, where OLS has nearly dependent atoms or needs too many
// products, and where no atom correlates beyond rounding, the signal stays unsolved.
#pragma once
#include "pursuit.h"
#include "screen.h"

namespace {

template <class T> class Alone {
    // v relative to the squared norm of the atom: what is less loses digits
    static constexpr double MIN_PIVOT = 1e-3;
    // of the products that OLS would take without a copy, that it may spend
    static constexpr double MAX_SHARE = 0.25;
    static constexpr double ROUNDED_DOWN = 1 - 1e-9;  // what rounding leaves of a bound

    Screen<T> &screen;
    const Dictionary<T> &D;
    const Tile<T> &tile;
    const int threads;
    const bool ols;
    const int64_t n;
    Pursuit<double, T> P;
    Array<double> y;
    Array<int64_t> which;
    typename Screen<T>::Rounded r, q;                  // the residual; OLS: the last direction
    Array<double> r_lower, r_upper, q_lower, q_upper;  // ends of the intervals of their products with all atoms
    Array<double> Q, low, high, exact, squares;        // OLS: directions, bounds of v, its value, squared norms
    Array<int32_t> seen;                               // OLS: how many directions the value knows of
    int64_t spent = 0;

  public:
    Alone(Screen<T> &screen, Method method, const Tile<T> &tile, int threads)
        : screen(screen), D(screen.D), tile(tile), threads(threads), ols(method == Method::ols), n(D.n),
          P(D, tile, method), y(D.d), which(n), r(screen), q(screen), r_lower(n), r_upper(n), q_lower(n), q_upper(n),
          Q(ols ? size_t(tile.width) * D.d : 0), low(n), high(n), exact(n), squares(n), seen(n) {}

    void solve(int64_t number) {
        for (int i = 0; i < D.d; ++i) y[i] = tile.y[number * D.d + i];
        P.begin(tile, number, y, D.norms);
        if (ols) begin_ols();
        for (double size = P.length; !P.limit_reached() && size > P.noise * P.absolute_sum() && !(size <= P.tol);) {
            check_interrupt(tile.stop);
            const int64_t j = ols ? best_gain() : best_correlation();
            if (j < 0) return;
            if (!P.enter(int(j), screen.column(j)) && ols) return;  // dependent: the directions would be wrong
            if (ols && P.ill_conditioned()) return;
            size = P.residual_norm();
        }
        P.finish(tile, number);
    }

  private:
    // Intervals for the residual and, in OLS, the last direction: the second finds columns in the cache.
    void enclose(bool has_direction) {
        screen.in_pieces(threads, n, [&](int64_t start, int64_t stop) {
            screen.enclose(r, nullptr, start, stop, true, r_lower, r_upper);
            if (has_direction) screen.enclose(q, nullptr, start, stop, true, q_lower, q_upper);
        });
    }

    // OMP: the atom of the largest |<a, r>| beyond rounding; -1 if the copy does not tell.
    int64_t best_correlation() {
        if (!screen.round(P.residual, r)) return -1;
        enclose(false);
        double threshold = 0, best = 0;
#pragma omp simd reduction(max : threshold)
        for (int64_t j = 0; j < n; ++j) threshold = r_lower[j] > threshold ? r_lower[j] : threshold;
        int64_t count = 0, found = -1;
        for (int64_t j = 0; j < n; ++j)
            if (r_upper[j] >= threshold) which[count++] = j;
        if (count > n / 10) return -1;
        screen.fetch(which, count);
        const double floor = P.noise * P.absolute_sum();
        for (int64_t k = 0; k < count; ++k) {
            const double c = std::fabs(inner<double>(P.w, screen.column(which[k]), P.residual.data(), D.d));
            if (c > best && c > floor * P.candidate_norms[which[k]]) best = c, found = which[k];
        }
        return found;
    }

    void begin_ols() {
        spent = 0;
        for (int64_t j = 0; j < n; ++j) {
            q_lower[j] = q_upper[j] = 0;
            const double norm = screen.scale[j] * screen.norm[j];  // rounded up, by less than the share below
            high[j] = squares[j] = norm * norm;
            low[j] = high[j] * (1 - 8 * (D.d + 1024) * U);
            seen[j] = -1;
        }
    }

    // OLS: the atom of the largest c^2 / v beyond rounding; -1 if that takes too much.
    int64_t best_gain() {
        double threshold = 0, best = 0;
        if (!screen.round(P.residual, r)) return -1;
        if (P.s > 0) {
            low[P.atoms[P.s - 1]] = high[P.atoms[P.s - 1]] = INFINITY;
            double *const last = Q + size_t(P.s - 1) * D.d;
            P.direction(last);
            if (!screen.round(last, q)) return -1;
        }
        enclose(P.s > 0);
        for (int64_t j = 0; j < n; ++j) {  // products with q are 0 before the first direction
            const double most = q_upper[j], least = larger(q_lower[j], 0.0);
            const double size = larger(r_lower[j], 0.0);
            low[j] -= most * most;
            high[j] -= least * least;
            threshold = larger(threshold, high[j] > 0 ? size * size / high[j] : 0.0);
        }
        int64_t count = 0, found = -1;
        for (int64_t j = 0; j < n; ++j)
            if (r_upper[j] * r_upper[j] >= ROUNDED_DOWN * threshold * low[j] || low[j] <= MIN_PIVOT * squares[j])
                which[count++] = j;
        if (double(spent + count) > MAX_SHARE * double(n) * (P.s + 1)) return -1;
        screen.fetch(which, count);
        const double floor = P.noise * P.absolute_sum();
        for (int64_t k = 0; k < count; ++k) {
            const int64_t j = which[k];
            if (!make_exact(j)) return -1;
            const double c = std::fabs(inner<double>(P.w, screen.column(j), P.residual.data(), D.d));
            const double gain = c * c / low[j];
            if (c > floor * P.candidate_norms[j] && gain > best) found = j, best = gain;
        }
        return found;
    }

    // OLS: v of atom j with all directions; false if it is nearly dependent on the active atoms, or that took too much.
    bool make_exact(int64_t j) {
        const T *a = screen.column(j);
        if (seen[j] < 0) exact[j] = inner<double>(P.w, a, a, D.d), seen[j] = 0;
        spent += 1 + P.s - seen[j];
        for (int i = seen[j]; i < P.s; ++i) {
            const double t = inner<double>(P.w, a, Q + size_t(i) * D.d, D.d);
            exact[j] -= t * t;
        }
        seen[j] = P.s;
        low[j] = high[j] = exact[j] > 16 * (P.s + 4) * U * squares[j] ? exact[j] : INFINITY;
        return double(spent) <= MAX_SHARE * double(n) * (P.s + 1) && low[j] > MIN_PIVOT * squares[j];
    }
};

// The screen of module.cpp: with `solve_alone`.
template <class T> class Screened final : public Screen<T> {
  public:
    using Screen<T>::Screen;
    void solve_alone(Method method, const Tile<T> &tile, int threads) override {
        Alone<T> alone(*this, method, tile, threads);
        for (int64_t number = 0; number < tile.count; ++number)
            if (tile.counts[number] == UNSOLVED) alone.solve(number);
    }
};

}  // namespace
