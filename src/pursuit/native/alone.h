// OMP or OLS of one signal on a large dictionary, from its residual and the 8-bit copy of the dictionary (screen.h).
//
// A turn asks which atom correlates best with the residual r. The copy proves that it is one of a few, which are then
// compared by products in full precision. Where the copy leaves more than a tenth of the atoms, the next turns (1, 3, 7,
// ... 63 while this goes on) compute all products instead. The atom enters as in fast.h, with Gram entries computed as
// they are needed. All arithmetic is in float64. Threads share the columns.
//
// OLS asks for the largest c_j^2 / v_j, with v_j = |a_j|^2 - sum_i <q_i, a_j>^2 for an orthonormal basis q_i of the active
// atoms. The copy encloses <q_i, a_j> as it does c_j = <a_j, r>, for one more direction a turn, and the squares add up to
// bounds of v_j. Atoms whose largest ratio reaches the largest of the least ones are compared in full precision, with
// the directions that came since they last were; their bounds are exact then. Where that takes too many products, or
// atoms are nearly dependent, the signal stays unsolved.
#pragma once
#include "screen.h"

namespace {

template <class T> class Alone {
    static constexpr int PIECES = 16, MAX_PAUSE = 63, NEARBY = 64;
    static constexpr double CLEAR_PIVOT = 1e-3, MAX_INVERSE = 1e4;  // as in fast.h
    static constexpr double MAX_SHARE = 0.25;   // of the products that OLS would take without a copy, that it may spend
    static constexpr double NEARLY = 1 - 1e-9;  // what rounding leaves of a bound

    // Intervals of the products of all atoms with a vector, which is rounded first.
    struct Query {
        Array<int16_t> p;
        Array<double> lower, upper;
        Rounded rounded{};
        bool asked = false;
        Query(const Screen<T> &screen, bool used)
            : p(used ? screen.width : 0), lower(used ? screen.D.n : 0), upper(used ? screen.D.n : 0) {}
    };

    const Screen<T> &screen;
    const Dictionary<T> &D;
    const Tile<T> &tile;
    Team &team;
    const bool ols;
    const int d, n, width;
    const double noise, rounding;
    int s = 0;
    int64_t spent = 0;
    double length = 0, absolute_sum = 0;
    Array<double> y, r, inverse_factor, x, beta, inverse_diagonal, h, norms;
    Array<int32_t> atoms;
    Array<int64_t> which;
    Query residual, direction;
    // OLS: directions; bounds of v, its value, squared norms, and how many directions the value knows of
    Array<double> Q, low, high, exact, squares;
    Array<int32_t> seen;

  public:
    Alone(const Screen<T> &screen, const Dictionary<T> &D, Method method, const Tile<T> &tile, Team &team)
        : screen(screen), D(D), tile(tile), team(team), ols(method == Method::ols), d(D.d), n(D.n), width(tile.width),
          noise(4 * std::sqrt(double(d)) * double(EPS<T>)), rounding((d + 32) * U), y(d), r(d),
          inverse_factor(size_t(width) * width), x(width), beta(width), inverse_diagonal(width), h(width), norms(width),
          atoms(width), which(n), residual(screen, true), direction(screen, ols), Q(ols ? size_t(width) * d : 0),
          low(ols ? n : 0), high(ols ? n : 0), exact(ols ? n : 0), squares(ols ? n : 0), seen(ols ? n : 0) {}

    void solve(int64_t number) {
        for (int i = 0; i < d; ++i) y[i] = double(tile.y[number * d + i]);
        const int64_t limit = tile.limits[number];
        const double tol = double(tile.tols[number]);
        s = 0, spent = 0;
        double size = length = absolute_sum = residual_norm();
        if (ols) begin_ols();
        for (int pause = 0, longest_pause = 0; s < limit && size > noise * absolute_sum * (ols || s == 0) && !(size <= tol); ) {
            double c = 0;
            const int64_t j = ols ? best_gain(c) : best_correlation(c, pause, longest_pause);
            if (j == GIVEN_UP) return;
            if (j < 0) break;
            if (!enter(j, c)) return;
            size = residual_norm();
        }
        finish(number);
    }

  private:
    static constexpr int64_t NONE = -1, GIVEN_UP = -2;

    const T *column(int i) const { return screen.column(atoms[i]); }

    double residual_norm() {
        combine<double>(1, y, x, [&](int i) { return column(i); }, s, d, r);
        return std::sqrt(dot<double>(r, r, d));
    }

    // Products of all atoms with r, into residual.lower.
    void multiply() {
        double *const out = residual.lower;
        auto piece = [&](int k) {
            const int64_t start = int64_t(k) * n / PIECES, stop = int64_t(k + 1) * n / PIECES;
            if (!screen.strided()) {
                for (int64_t j = start; j < stop; ++j) out[j] = exact_dot<T, double>(D.atom(int(j)), r, d);
                return;
            }
            for (int64_t j = start; j < stop; ++j) out[j] = 0;
            for (int i = 0; i < d && D.atom_stride == 1; ++i)
                add<double, T>(out + start, r[i], D.atom(int(start)) + i * D.entry_stride, int(stop - start));
            for (int64_t j = start; j < stop && D.atom_stride != 1; ++j)
                for (int i = 0; i < d; ++i) out[j] += r[i] * double(D.atom(int(j))[i * D.entry_stride]);
        };
        team.run(PIECES, piece);
    }

    // Intervals for both queries; the largest lower end of the first.
    double enclose() {
        double best[PIECES];
        auto piece = [&](int k) {
            const int64_t start = int64_t(k) * n / PIECES, stop = int64_t(k + 1) * n / PIECES;
            best[k] = -INFINITY;
            for (int64_t from = start; from < stop; from += NEARBY) {  // the second query finds them in the cache
                const Columns some{nullptr, from, smaller(from + NEARBY, stop)};
                const double found = screen.enclose(residual.rounded, some, false, true, residual.lower, residual.upper);
                best[k] = larger(best[k], found);
                if (direction.asked) screen.enclose(direction.rounded, some, false, true, direction.lower, direction.upper);
            }
        };
        team.run(PIECES, piece);
        double most = -INFINITY;
        for (double each : best) most = larger(most, each);
        return most;
    }

    // OMP: the atom of the largest |<a, r>| beyond rounding, NONE if there is none.
    int64_t best_correlation(double &c, int &pause, int &longest_pause) {
        const double floor = noise * absolute_sum;
        int64_t found = NONE;
        const auto consider = [&](int64_t j, double product) {
            if (std::fabs(product) > std::fabs(c) && std::fabs(product) > floor * double(D.norms[j])) found = j, c = product;
        };
        if (--pause < 0 && (residual.asked = screen.round(r, rounding, residual.p, residual.rounded))) {
            const double bar = enclose();
            const int64_t most = n / 10, count = screen.contenders(residual.upper, bar, most, which);
            longest_pause = count <= most ? 0 : smaller(2 * longest_pause + 1, MAX_PAUSE);
            pause = longest_pause;
            for (int64_t k = 0; k < count && count <= most; ++k)
                consider(which[k], exact_dot<T, double>(screen.column(which[k]), r, d));
        }
        if (found == NONE) {  // the copy was of no use, or left no good atom: all have the last word
            multiply();
            for (int64_t j = 0; j < n; ++j) consider(j, residual.lower[j]);
            screen.fetch(&found, found >= 0);
        }
        return found;
    }

    void begin_ols() {
        for (int64_t j = 0; j < n; ++j) {
            const double norm = screen.scale[j] * screen.norm[j];  // rounded up, by less than the share below
            high[j] = squares[j] = norm * norm;
            low[j] = high[j] * (1 - 8 * (d + 1024) * U);
            seen[j] = -1;
        }
    }

    // OLS: the atom of the largest c^2 / v, NONE if there is none beyond rounding.
    int64_t best_gain(double &c) {
        residual.asked = screen.round(r, rounding, residual.p, residual.rounded);
        direction.asked = s > 0;
        double unit = 0;
        if (s > 0) {
            double *q = Q + size_t(s - 1) * d;
            std::memset(q, 0, d * sizeof(double));
            for (int i = 0; i < s; ++i) add<double, T>(q, inverse_factor[size_t(s - 1) * width + i], column(i), d);
            if (!screen.round(q, rounding, direction.p, direction.rounded)) return GIVEN_UP;
            unit = std::ldexp(1.0, direction.rounded.exponent);
        }
        if (!residual.asked) return GIVEN_UP;
        enclose();
        double bar = 0;
        for (int64_t j = 0; j < n; ++j) {
            const double most = unit * direction_end(direction.upper, j), least = unit * larger(direction_end(direction.lower, j), 0.0);
            const double size = larger(double(residual.lower[j]), 0.0);
            low[j] -= most * most;
            high[j] -= least * least;
            bar = larger(bar, high[j] > 0 ? size * size / high[j] : 0.0);
        }
        int64_t count = 0, found = NONE;
        for (int64_t j = 0; j < n; ++j)
            if (residual.upper[j] * residual.upper[j] >= NEARLY * bar * low[j] || low[j] <= CLEAR_PIVOT * squares[j]) which[count++] = j;
        if (spent + count > MAX_SHARE * n * (s + 1)) return GIVEN_UP;
        screen.fetch(which, count);
        double most = 0;
        for (int64_t k = 0; k < count; ++k) {
            const int64_t j = which[k];
            if (!make_exact(j)) return GIVEN_UP;
            const double product = exact_dot<T, double>(screen.column(j), r, d);
            if (std::fabs(product) > noise * absolute_sum * double(D.norms[j]) && product * product > most * low[j])
                found = j, c = product, most = product * product / low[j];
        }
        return found;
    }

    double direction_end(const double *ends, int64_t j) const { return s > 0 ? ends[j] : 0; }

    // OLS: v of atom j with all directions, infinite for a dependent atom; false if it is nearly dependent, or too dear.
    bool make_exact(int64_t j) {
        const T *a = screen.column(j);
        if (seen[j] < 0) exact[j] = exact_dot<T, T>(a, a, d), seen[j] = 0;
        spent += 1 + s - seen[j];
        for (int i = seen[j]; i < s; ++i) {
            const double t = exact_dot<T, double>(a, Q + size_t(i) * d, d);
            exact[j] -= t * t;
        }
        seen[j] = s;
        if (low[j] < INFINITY) low[j] = high[j] = exact[j] > 16 * (s + 4) * U * squares[j] ? double(exact[j]) : INFINITY;
        return spent <= MAX_SHARE * n * (s + 1) && low[j] > CLEAR_PIVOT * squares[j];
    }

    // Atom j of correlation c enters; false if it is nearly dependent on the active ones.
    bool enter(int64_t j, double c) {
        const T *a = screen.column(j);
        const double square = exact_dot<T, T>(a, a, d);
        for (int i = 0; i < s; ++i) h[i] = exact_dot<T, T>(column(i), a, d), beta[i] = 0;
        const double pivot = square - project(h, beta);
        if (!(pivot > CLEAR_PIVOT * square)) return false;
        const double root = 1 / std::sqrt(pivot), step = c / pivot;
        atoms[s] = int32_t(j), norms[s] = double(D.norms[j]), x[s] = inverse_diagonal[s] = 0, beta[s] = -1;
        absolute_sum = length;
        double *row = inverse_factor + size_t(s) * width;
        for (int i = 0; i <= s; ++i) {
            row[i] = -root * beta[i];
            x[i] -= step * beta[i];
            inverse_diagonal[i] += row[i] * row[i];
            absolute_sum += std::fabs(x[i]) * norms[i];
        }
        ++s;
        if (ols) low[j] = high[j] = INFINITY;
        return true;
    }

    // out += T'T v, with T the inverse factor; |T v|^2.
    double project(const double *v, double *out) const {
        double square = 0;
        for (int i = 0; i < s; ++i) {
            const double *row = inverse_factor + size_t(i) * width, u = dot(row, v, i + 1);
            square += u * u;
            add(out, u, row, i + 1);
        }
        return square;
    }

    // One step of iterative refinement, and the code, atoms in increasing order, unless digits are lost.
    void finish(int64_t number) {
        for (int i = 0; i < s; ++i) {
            h[i] = exact_dot<T, double>(column(i), r, d);
            if (inverse_diagonal[i] * norms[i] * norms[i] > MAX_INVERSE) return;
        }
        project(h, x);
        for (int i = 0; i < s; ++i) {
            int64_t place = number * width;
            for (int k = 0; k < s; ++k) place += atoms[k] < atoms[i];
            tile.atoms[place] = atoms[i];
            tile.x[place] = T(x[i]);
        }
        tile.counts[number] = s;
    }
};

}  // namespace
