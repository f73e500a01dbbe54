// Pursuits and Lassos from the residuals themselves, all signals of a tile in step: for weighted signals, few signals,
// many atoms.
//
// With weights every signal has its own inner product, hence its own Gram matrix, of which only entries between active
// atoms are formed. In a turn the caller multiplies the `vectors` of all signals by the dictionary, one matrix product
// for the tile, and hands the products back to `advance`.
#pragma once
#include "pursuit.h"

namespace {

constexpr int REFRESH = 64;  // turns after which OLS computes correlations anew that it kept up to date till then

// A Solver is the problem of one signal, FromResidual below or Lasso: `vectors` writes the vectors that are to be
// multiplied by the dictionary, weights included, at most two, and returns their end; `advance` takes one turn from the
// products, and returns their end; `done` says whether it was the last.
template <class Solver, class T> class InStep final : public DirectPursuits<T> {
    const Dictionary<T> D;
    const Tile<T> tile;
    Array<T> scratch;  // n numbers to work with, and 64 zeros
    Array<int64_t> numbers;
    Objects<Solver> solvers;

  public:
    InStep(const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *norms, int64_t norms_stride)
        : D(D), tile(tile), scratch(D.n + 64), numbers(tile.count), solvers(tile.count) {
        for (int64_t number = 0; number < tile.count; ++number) {
            if (tile.counts[number] != UNSOLVED) continue;
            numbers[solvers.size()] = number;
            Solver &P = solvers.add(this->D, method, this->tile);
            P.begin(number, norms + number * norms_stride);
            if (P.done) P.finish(number);
        }
    }

    int64_t vectors(T *out) override {
        T *to = out;
        for (size_t p = 0; p < solvers.size(); ++p)
            if (!solvers[p].done) to = solvers[p].vectors(to);
        return (to - out) / D.d;
    }

    void advance(T *products) override {
        for (size_t p = 0; p < solvers.size(); ++p) {
            Solver &P = solvers[p];
            if (P.done) continue;
            products = P.advance(products, scratch);
            if (P.done) P.finish(numbers[p]);
        }
    }
};

// The pursuit of one signal.
template <class T> class FromResidual {
    const Dictionary<T> &D;
    const Tile<T> &tile;
    Pursuit<T> P;
    Array<T> c;               // OLS: correlations, kept up to date
    bool recomputes = false;  // whether the correlations are computed from the residual in this turn

  public:
    bool done = false;

    FromResidual(const Dictionary<T> &D, Method method, const Tile<T> &tile)
        : D(D), tile(tile), P(D, tile, method), c(method == Method::ols ? D.n : 0) {}

    void begin(int64_t number, const T *norms) {
        P.begin(tile, number, tile.y + number * D.d, norms);
        done = P.done;
    }
    void finish(int64_t number) { P.finish(tile, number); }

    // The residual and, of OLS, the last direction.
    T *vectors(T *to) {
        recomputes = P.method != Method::ols || P.turns % REFRESH == 0 || P.delicate;
        if (has_direction()) P.direction(to), to = weighted(P.w, to, D.d);
        if (recomputes) std::memcpy(to, P.residual, D.d * sizeof(T)), to = weighted(P.w, to, D.d);
        return to;
    }

    T *advance(T *products, T *key) {
        T *correlations = P.method == Method::ols ? c.data() : products;
        if (has_direction()) P.remove_direction(products, correlations), products += D.n;
        if (recomputes) {
            if (P.method == Method::ols) std::memcpy(correlations, products, D.n * sizeof(T));
            products += D.n;
        }
        done = !turn(correlations, key);
        return products;
    }

  private:
    bool has_direction() const { return P.method == Method::ols && P.s > 0; }

    // One turn; false when it was the last.
    bool turn(const T *correlations, T *key) {
        for (;;) {
            if (P.limit_reached() || (P.tol >= 0 && P.residual_norm() <= P.tol)) return false;
            const int j = P.best(D, correlations, key);
            if (j < 0) return false;
            const T *column = P.entries(D, j);
            if (P.method == Method::mp ? P.match(j, column, correlations[j]) : P.enter(j, column)) break;
            if (P.method == Method::mp) return false;
        }
        const T size = P.residual_norm();
        P.delicate = P.ill_conditioned() || size <= 1024 * P.noise * P.absolute_sum();
        if (P.delicate && (P.method == Method::omp || P.method == Method::ols)) P.refine(), P.residual_norm();
        return true;
    }
};

}  // namespace
