// Pursuits from the residuals themselves, all signals of a tile in step: for weights, few signals and many atoms.
//
// With weights every signal has its own inner product, hence its own Gram matrix, of which only entries between active
// atoms are formed. In a turn the caller multiplies the `vectors` of all signals by the dictionary, one matrix product
// for the tile, and hands the products back to `advance`.
#pragma once
#include "pursuit.h"

namespace {

constexpr int REFRESH = 64;  // turns after which OLS computes correlations anew that it kept up to date till then

template <class T> class Direct {
    const Dictionary<T> D;
    const Tile<T> tile;
    const Method method;
    const int64_t signals;
    Array<Pursuit<T> *> pursuits;
    Array<T> c, key;  // OLS: correlations, kept up to date; room for `best`
    Array<int64_t> numbers;
    Array<bool> asks_direction;
    int64_t going = 0;

  public:
    Direct(const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *norms, int64_t norms_stride)
        : D(D), tile(tile), method(method), signals(unsolved(tile)), pursuits(signals),
          c(method == Method::ols ? size_t(signals) * D.n : 0), key(D.n), numbers(signals), asks_direction(signals) {
        int64_t p = 0;
        for (int64_t number = 0; number < tile.count; ++number) {
            if (tile.counts[number] != UNSOLVED) continue;
            pursuits[p] = new Pursuit<T>(D, tile, method);
            pursuits[p]->begin(tile, number, norms + number * norms_stride);
            if (pursuits[p]->over) pursuits[p]->finish(tile, number);
            numbers[p++] = number;
        }
    }
    ~Direct() {
        for (int64_t p = 0; p < signals; ++p) delete pursuits[p];
    }

    // What is to be multiplied by the dictionary, weights included: residuals, or the last directions of OLS. How many.
    int64_t vectors(T *out) {
        going = 0;
        for (int64_t p = 0; p < signals; ++p) {
            Pursuit<T> &P = *pursuits[p];
            if (P.over) continue;
            asks_direction[p] = method == Method::ols && P.turns % REFRESH != 0 && P.s > 0 && !P.ill_conditioned();
            T *to = out + going++ * D.d;
            if (asks_direction[p]) direction(P, to);
            else std::memcpy(to, P.residual, D.d * sizeof(T));
            for (int i = 0; P.w && i < D.d; ++i) to[i] *= P.w[i];
        }
        return going;
    }

    // One turn of every signal, from the products of its vector.
    void advance(T *products) {
        for (int64_t p = 0; p < signals; ++p) {
            Pursuit<T> &P = *pursuits[p];
            if (P.over) continue;
            T *mine = products;
            if (method == Method::ols) mine = update_gains(P, p, products);
            P.over = !turn(P, mine);
            if (P.over) P.finish(tile, numbers[p]);
            products += D.n;
        }
    }

  private:
    static int64_t unsolved(const Tile<T> &tile) {
        int64_t count = 0;
        for (int64_t number = 0; number < tile.count; ++number) count += tile.counts[number] == UNSOLVED;
        return count;
    }

    void direction(const Pursuit<T> &P, T *out) {
        std::memset(out, 0, D.d * sizeof(T));
        for (int i = 0; i < P.s; ++i) add<T>(out, P.u[i], P.columns[i], D.d);
    }

    // OLS: correlations of a signal, from products with its last direction or with its residual.
    T *update_gains(Pursuit<T> &P, int64_t p, const T *products) {
        T *mine = c + p * D.n;
        if (asks_direction[p]) P.remove_direction(products, mine);
        else std::memcpy(mine, products, D.n * sizeof(T));
        return mine;
    }

    // False at the end.
    bool turn(Pursuit<T> &P, const T *correlations) {
        for (;;) {
            if (P.limit_reached() || (P.tol >= 0 && P.residual_norm() <= P.tol)) return false;
            const int j = P.best(correlations, key);
            if (j < 0) return false;
            const T *column = P.entries(D, j);
            if (method == Method::mp) {
                if (!P.match(j, column, correlations[j])) return false;
                break;
            }
            const auto gram = [&](int k) { return inner(P.w, k < P.s ? P.columns[k] : column, column, D.d); };
            const T correlation = inner<T>(P.w, column, P.residual, D.d);
            if (P.enter(j, column, correlation, inner(P.w, column, P.y, D.d), gram)) break;
        }
        P.residual_norm();
        return true;
    }
};

}  // namespace
