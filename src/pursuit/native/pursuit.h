// One signal, its active atoms and their weights, in full precision: the part that all methods share.
//
// The Gram matrix of the s active atoms is H = L L', b are their products with the signal, and the weights solve
// H x = b (OMP, OLS) or minimise x'Hx / 2 - b'x over x >= 0 (NNOMP). The drivers of a pursuit find the correlations c
// of all atoms with the residual: `careful` below from a Gram matrix, direct.h from products with the dictionary,
// alone.h from its 8-bit copy.
//
// An atom j enters with the last row u of L^-1: q = sum_i u_i a_i has norm 1, is orthogonal to the atoms before and has
// the product c_j u_s with the residual. So the weights move by (c_j u_s) u.
#pragma once
#include "kernels.h"
#include "simd.h"

namespace {

constexpr int MP_STEPS = 10;  // most steps of matching pursuit for each atom that it may use

// Whether two atoms are equal, up to sign, in the entries that count: those of positive weight w, or all if that is
// null.
template <class A> bool same_atom(const Dictionary<A> &D, int i, int j, const A *w = nullptr) {
    const A *a = D.atom(i), *b = D.atom(j);
    bool same = true, negated = true;
    for (int64_t t = 0; t < D.d && (same || negated); ++t) {
        const A p = a[t * D.entry_stride], q = b[t * D.entry_stride];
        if (!w || w[t] > 0) same &= p == q, negated &= p == -q;
    }
    return same || negated;
}

// The code of a signal: s atoms in increasing order, and their weights.
template <class A, class T>
void write_code(const Tile<A> &tile, int64_t number, const int32_t *atoms, const T *x, int s) {
    for (int i = 0; i < s; ++i) {
        int64_t place = number * tile.width;
        for (int k = 0; k < s; ++k) place += atoms[k] < atoms[i];
        tile.atoms[place] = atoms[i];
        tile.x[place] = A(x[i]);
    }
    tile.counts[number] = s;
}

// A vector, times weights if there are any, in place; the end of it.
template <class T> T *weighted(const T *w, T *vector, int d) {
    for (int i = 0; w && i < d; ++i) vector[i] *= w[i];
    return vector + d;
}

// The arithmetic is of type T, the entries of atoms are of type A.
template <class T, class A = T> class Pursuit {
  public:
    const int d, n, width;
    const Method method;
    int s = 0, limit = 0, turns = 0;
    bool done = false;
    bool delicate = false;  // whether errors of the weights could pass for correlations with the residual
    T tol = 0, length = 0;  // length: the norm of y
    T residual_square = 0;  // the squared norm of the residual, up to rounding
    T longest = 0;          // the largest norm of an atom
    T last_step = 0;        // OLS: the product of the last direction with the residual
    const T *y = nullptr;
    const A *w = nullptr;  // weights of the entries of y; null: all are 1
    Array<int32_t> atoms;  // the active ones: numbers, entries, weights, products with y, norms
    Array<const A *> columns;
    Array<T> x, b, norms;
    Array<T> inverse_diagonal;  // upper bounds of the diagonal of the inverse of H
    Array<T> u;                 // the last row of L^-1
    Array<T> candidate_norms;   // norms of all atoms, infinite for those that were tried
    // OLS: squared norms of the parts of all atoms that are orthogonal to the active ones
    Array<T> orthogonal;
    Array<T> residual;
    const T noise;  // rounding of a correlation relative to the norms of its factors

    Pursuit(const Dictionary<A> &D, const Tile<A> &tile, Method method)
        : d(D.d), n(D.n), width(tile.width), method(method), atoms(width), columns(width), x(width), b(width),
          norms(width), inverse_diagonal(width), u(width), candidate_norms(n),
          orthogonal(method == Method::ols ? n : 0), residual(d), noise(T(4 * std::sqrt(T(d)) * EPS<A>)), H(square()),
          L(square()), z(width), stored(D.entry_stride == 1 ? 0 : size_t(width) * d) {}

    void begin(const Tile<A> &tile, int64_t number, const T *signal, const A *all_norms) {
        y = signal;
        w = tile.weights ? tile.weights + number * d : nullptr;
        limit = int(tile.limits[number]), tol = tile.tols[number];
        length = std::sqrt(inner<T>(w, y, y, d));
        residual_square = length * length;
        s = turns = 0;
        done = length == 0, delicate = false;
        for (int j = 0; j < n; ++j) candidate_norms[j] = all_norms[j];
        longest = largest_magnitude<T>(candidate_norms, n);
        for (int j = 0; method == Method::ols && j < n; ++j) orthogonal[j] = candidate_norms[j] * candidate_norms[j];
        std::memcpy(residual, y, d * sizeof(T));
    }

    // Computes the residual and returns its norm.
    T residual_norm() {
        combine<T>(1, y, x, [&](int i) { return columns[i]; }, s, d, residual);
        return std::sqrt(inner<T>(w, residual.data(), residual.data(), d));
    }

    // Sizes of the terms of a residual: rounding moves a correlation by no more than `noise` of this times a norm.
    T absolute_sum() const {
        T sum = length;
        for (int i = 0; i < s; ++i) sum += std::fabs(x[i]) * norms[i];
        return sum;
    }

    // Whether the residual is small enough; it is formed where `residual_square` does not decide.
    bool tolerable() {
        if (tol < 0) return false;
        const T size = absolute_sum(), doubt = T(16 * (turns + 4)) * EPS<T> * size * size;
        return residual_square <= tol * tol + doubt && residual_norm() <= tol;
    }

    bool limit_reached() const {
        if (method == Method::mp) return turns == MP_STEPS * limit;
        return s == limit || turns == 4 * limit + n + 16;
    }

    // The atom that enters next; -1 if none correlates beyond rounding. `key` has room for n numbers. Of equal atoms it
    // is the first, though their correlations may differ in the last bits: BLAS adds up in various orders.
    int best(const Dictionary<A> &D, const T *c, T *key) const {
        const T floor = noise * absolute_sum(), least = T(16 * (s + 4)) * EPS<T>;
        const T *const f = candidate_norms, *const v = orthogonal;
        T most = 0;
        const auto search = [&](auto merit) {
#pragma omp simd reduction(max : most)
            for (int j = 0; j < n; ++j) {
                key[j] = merit(j);
                most = key[j] > most ? key[j] : most;
            }
        };
        if (method == Method::nnomp) search([&](int j) { return c[j] > floor * f[j] ? c[j] : T(0); });
        else if (method != Method::ols)
            search([&](int j) { return std::fabs(c[j]) > floor * f[j] ? T(std::fabs(c[j])) : T(0); });
        else  // c / sqrt(v), as c^2 / v could underflow
            search([&](int j) {
                const bool counts = std::fabs(c[j]) > floor * f[j] && v[j] > least * f[j] * f[j];
                return counts ? T(std::fabs(c[j]) / std::sqrt(v[j])) : T(0);
            });
        if (most == 0) return -1;
        int found = first_from(key, 0, method == Method::ols ? most / 2 : most - 2 * floor * longest);
        if (key[found] == most) return found;  // which no equal atom precedes
        found = first_from(key, found, most);
        const T near =
            method == Method::ols ? most / 2 : most - 2 * floor * f[found];  // equal atoms have at least this
        for (int i = first_from(key, 0, near); i < found; i = first_from(key, i + 1, near))
            if (same_atom(D, i, found, w)) return i;
        return found;
    }

    // The first place from j on with a number of at least `least`; n if there is none.
    int first_from(const T *key, int j, T least) const {
        while (n - j > 64 && largest_magnitude(key + j, 64) < least) j += 64;  // the search by entries takes longer
        while (j < n && key[j] < least) ++j;
        return j;
    }

    // The entries of atom j, one after the other. Where the dictionary has them strided, they are copied, into the
    // space of an atom that left if there is one.
    const A *entries(const Dictionary<A> &D, int j) {
        if (D.entry_stride == 1) return D.atom(j);
        for (int k = 0; k < s; ++k)
            if (atoms[k] == j) return columns[k];
        if (s == width) return nullptr;  // matching pursuit has no room for it
        A *to = const_cast<A *>(columns[s] ? columns[s] : stored + size_t(s) * d);
        for (int i = 0; i < d; ++i) to[i] = D.atom(j)[i * D.entry_stride];
        return columns[s] = to;
    }

    // Atom j of correlation c enters with its product with y and its Gram entries h (with the active atoms, then with
    // itself); false if it is dependent on the active ones. It is not tried again, unless it leaves.
    template <class Row> bool enter(int j, const A *column, T c, T product, Row h) {
        const T norm = candidate_norms[j];
        candidate_norms[j] = T(INFINITY);
        ++turns;
        for (int k = 0; k <= s; ++k) H[size_t(s) * width + k] = H[size_t(k) * width + s] = h(k);
        atoms[s] = j, columns[s] = column, b[s] = product, norms[s] = norm, x[s] = inverse_diagonal[s] = 0;
        if (!extend_factor(s)) return false;
        last_step = c * u[s++];
        if (method == Method::nnomp) make_nonnegative();
        else add<T>(x, last_step, u, s);
        residual_square = length * length - dot<T>(x, b, s);
        return true;
    }

    // The same from the residual and the entries of the atoms.
    bool enter(int j, const A *column) {
        const auto h = [&](int k) { return inner<T>(w, k < s ? columns[k] : column, column, d); };
        return enter(j, column, inner<T>(w, column, residual.data(), d), inner<T>(w, column, y, d), h);
    }

    // One step of matching pursuit along atom j, of correlation c; false if it would be one atom too many.
    bool match(int j, const A *column, T c) {
        int k = 0;
        while (k < s && atoms[k] != j) ++k;
        if (k == limit) return false;
        if (k == s) atoms[s] = j, columns[s] = column, norms[s] = candidate_norms[j], x[s++] = 0;
        const T step = c / inner<T>(w, column, column, d);
        x[k] += step;
        residual_square -= step * c;
        ++turns;
        return true;
    }

    // OLS: the last direction, q.
    void direction(T *q) const {
        combine<T>(0, nullptr, u, [&](int i) { return columns[i]; }, s, d, q);
        for (int i = 0; i < d; ++i) q[i] = -q[i];
    }

    // OLS: correlations and orthogonal parts after the last atom, from the products t of its direction with all atoms.
    void remove_direction(const T *t, T *c) {
        T *const v = orthogonal;
#pragma omp simd
        for (int j = 0; j < n; ++j) c[j] -= last_step * t[j], v[j] -= t[j] * t[j];
    }

    // Whether the Gram matrix of the active atoms has lost digits that the residual still has.
    bool ill_conditioned() const {
        for (int i = 0; i < s; ++i)
            if (inverse_diagonal[i] * norms[i] * norms[i] > 100) return true;
        return false;
    }

    // One step of iterative refinement of the weights; `residual` is theirs.
    void refine() {
        for (int i = 0; i < s; ++i) z[i] = inner<T>(w, columns[i], residual.data(), d);
        solve(z);
        add<T>(x, 1, z, s);
    }

    // Two steps of iterative refinement, if needed. The code.
    void finish(const Tile<A> &tile, int64_t number) {
        for (int turn = 0; turn < 2 && method != Method::mp && ill_conditioned(); ++turn) residual_norm(), refine();
        write_code(tile, number, atoms.data(), x.data(), s);
    }

  private:
    Array<T> H, L, z;
    Array<A> stored;  // entries of active atoms that the dictionary has strided
    int members = 0;  // atoms of a non-negative problem; those from place s on have weight 0

    size_t square() const { return method == Method::mp ? 1 : size_t(width) * width; }

    // L'v = v, in place.
    void solve_transposed(T *v, int count) const {
        for (int i = count - 1; i >= 0; --i) {
            v[i] /= L[size_t(i) * width + i];
            add<T>(v, -v[i], L + size_t(i) * width, i);
        }
    }

    // L L'v = v, in place.
    void solve(T *v) const {
        for (int i = 0; i < s; ++i) v[i] = (v[i] - dot<T>(L + size_t(i) * width, v, i)) / L[size_t(i) * width + i];
        solve_transposed(v, s);
    }

    // Row i of L and of L^-1; false if atom i is dependent on those before. The pivot is |a - sum_k beta_k a_k|^2 at
    // the best beta, from entries that are rounded: it is known to within a few eps (|a| + sum_k |beta_k| |a_k|)^2.
    bool extend_factor(int i) {
        T *row = L + size_t(i) * width, sum = norms[i];
        const T *g = H + size_t(i) * width;
        for (int k = 0; k < i; ++k) row[k] = (g[k] - dot<T>(row, L + size_t(k) * width, k)) / L[size_t(k) * width + k];
        const T pivot = g[i] - dot(row, row, i);
        std::memcpy(u, row, i * sizeof(T));
        solve_transposed(u, i);
        for (int k = 0; k < i; ++k) sum += std::fabs(u[k]) * norms[k];
        if (!(pivot > T(4 * (i + 2)) * EPS<T> * sum * sum)) return false;
        row[i] = std::sqrt(pivot);
        for (int k = 0; k < i; ++k) u[k] /= -row[i];
        u[i] = 1 / row[i];
        for (int k = 0; k <= i; ++k) inverse_diagonal[k] += u[k] * u[k];
        return true;
    }

    // The method of Lawson and Hanson on the s active atoms, from weights that are feasible. Atoms of weight 0 leave.
    void make_nonnegative() {
        members = s;
        const T floor = noise * absolute_sum();
        std::memcpy(z, x, s * sizeof(T));
        add<T>(z, last_step, u, s);
        for (int turn = 0, steps = 3 * members + 9; turn < steps; ++turn) {
            if (turn > 0) {
                std::memcpy(z, b, s * sizeof(T));
                solve(z);
            }
            int changed = members;         // rows of L from here on are no longer right
            if (!step_towards(changed)) {  // all weights are positive: who of the others most wants to grow?
                const int found = steepest(floor);
                if (found < 0) break;
                exchange(found, s++);
                changed = s - 1;
            }
            for (int i = changed; i < s; ++i)
                if (!extend_factor(i)) {
                    x[i] = 0;
                    exchange(i--, --s);
                }
        }
        for (int i = s; i < members; ++i) candidate_norms[atoms[i]] = norms[i];
    }

    // Moves from x towards z as far as all weights stay non-negative. Returns whether an atom left; `changed` is the
    // first place where one did.
    bool step_towards(int &changed) {
        T step = 1;
        for (int i = 0; i < s; ++i)
            if (!(z[i] > 0) && !(x[i] > step * (x[i] - z[i]))) step = x[i] > 0 ? x[i] / (x[i] - z[i]) : 0;
        const int before = s;
        for (int i = before - 1; i >= 0; --i) {
            const bool leaves = !(z[i] > 0) && !(x[i] > step * (x[i] - z[i]) * (1 + 4 * EPS<T>));
            x[i] = leaves ? 0 : step == 1 ? z[i] : x[i] + step * (z[i] - x[i]);
            if (leaves) exchange(i, --s), changed = i;
        }
        return s < before;
    }

    // The atom from place s on with the largest correlation relative to its norm, beyond rounding; -1 if there is none.
    int steepest(T floor) const {
        int found = -1;
        T most = 0;
        for (int i = s; i < members; ++i) {
            const T slope = (b[i] - dot<T>(H + size_t(i) * width, x, s)) / norms[i];
            if (slope > floor && slope > most) most = slope, found = i;
        }
        return found;
    }

    void exchange(int i, int k) {
        if (i == k) return;
        swap(atoms[i], atoms[k]), swap(columns[i], columns[k]);
        T *vectors[] = {x, b, z, norms, inverse_diagonal};
        for (T *v : vectors) swap(v[i], v[k]);
        for (int t = 0; t < members; ++t) swap(H[size_t(i) * width + t], H[size_t(k) * width + t]);
        for (int t = 0; t < members; ++t) swap(H[size_t(t) * width + i], H[size_t(t) * width + k]);
    }
};

// The pursuits of one tile over a shared Gram matrix, one signal after the other: all methods. `products` has a row of
// <y, atom> for each signal that is not solved yet.
template <class T> void careful(const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *products) {
    Pursuit<T> P(D, tile, method);
    Array<T> c(D.n), t(D.n);
    int turns = 0;  // of all signals
    const auto gram = [&](int i) { return D.gram_row(P.atoms[i]); };
    for (int64_t number = 0; number < tile.count; ++number) {
        if (tile.counts[number] != UNSOLVED) continue;
        P.begin(tile, number, tile.y + number * D.d, D.norms);
        std::memcpy(c, products, D.n * sizeof(T));
        while (!P.done && !P.limit_reached() && !P.tolerable()) {
            if (turns++ % 16 == 0) check_interrupt(tile.stop);
            const int j = P.best(D, c, t);
            if (j < 0) break;
            const T *row = D.gram_row(j), before = c[j];
            if (method == Method::mp) {
                if (!P.match(j, P.entries(D, j), before)) break;
                add<T>(c, -before / row[j], row, D.n);
                continue;
            }
            const auto h = [&](int k) { return row[k < P.s ? P.atoms[k] : j]; };
            T correlation = products[j];
            for (int k = 0; k < P.s; ++k) correlation -= h(k) * P.x[k];
            if (!P.enter(j, P.entries(D, j), correlation, products[j], h)) continue;
            if (method == Method::ols) {
                for (int i = 0; i < P.s; ++i) P.u[i] = -P.u[i];
                combine<T>(0, nullptr, P.u, gram, P.s, D.n, t);  // subtracts, so that t = sum_i u_i G_i
                P.remove_direction(t, c);
            } else combine<T>(1, products, P.x, gram, P.s, D.n, c);
        }
        P.finish(tile, number);
        products += D.n;
    }
}

}  // namespace
